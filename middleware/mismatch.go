package middleware

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/policy"
)

const (
	// maxListPages bounds how far a list of tools is read for one definition.
	maxListPages = 20
	// uselessFor is how long a definition is not asked for again after that was of no
	// use.
	uselessFor = 30 * time.Second
)

// refresh fetches the tool's definition afresh where the server says that the call's
// headers do not match it (-32020, MCP 2026-07-28) and that may be sent again: the
// Mcp-Param-* headers of the next POSTs are built from it, below the SDK. The SDK
// itself would look the tool up in its own cache, before the middlewares run, and
// ListTools answers from there too (go-sdk v1.8.0); so the list is asked for here.
// It reports whether it tried.
func (l *loop) refresh(ctx context.Context, q policy.Attempt) (tried bool) {
	cl := l.call
	if cl.session == nil || cl.protocolVersion() < sessionlessVersion || !cl.tool.CuredByRefresh(q) {
		return false
	}
	at := target{cl.server.name, cl.tool.Name}
	r := l.core.refreshes.get(at, func() *refresher { return &refresher{} })
	if l.refreshSpent {
		r.useless()
		return false
	}
	used := cl.mirrored
	l.refreshed = r.refresh(ctx, func() bool {
		if now, _ := l.core.headers.find(at); now != nil && now != used {
			return true // it came while this call was under way
		}
		t := l.definition(ctx)
		if t == nil {
			return false
		}
		headers, ok := paramHeadersOf(t)
		if ok {
			l.core.headers.put(at, headers)
		}
		return ok
	})
	return true
}

// A refresher lets the definition of one tool be fetched once for all who miss it, and
// not soon again where that was of no use. It is safe for concurrent use.
type refresher struct {
	mu    sync.Mutex
	under chan struct{} // closed when the fetch under way has ended; nil where none is
	until time.Time     // nothing is fetched
}

// refresh fetches, or waits for whoever does, and reports whether there is a definition
// now. fetch also looks whether it is there already.
func (r *refresher) refresh(ctx context.Context, fetch func() bool) bool {
	for {
		under, mine := r.begin()
		switch {
		case mine:
			return r.fetch(ctx, under, fetch)
		case under == nil, !await(ctx, under):
			return false
		}
	}
}

// begin returns the fetch under way, or begins one; neither is to be had while it would
// be of no use.
func (r *refresher) begin() (under chan struct{}, mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.under != nil || time.Now().Before(r.until) {
		return r.under, false
	}
	r.under = make(chan struct{})
	return r.under, true
}

func (r *refresher) fetch(ctx context.Context, under chan struct{}, fetch func() bool) (ok bool) {
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !ok && ctx.Err() == nil {
			r.until = time.Now().Add(uselessFor)
		}
		r.under = nil
		close(under)
	}()
	return fetch()
}

// useless says that the definition did not help.
func (r *refresher) useless() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until = time.Now().Add(uselessFor)
}

// hope says that the definition may have changed.
func (r *refresher) hope() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until = time.Time{}
}

type ownListKey struct{}

// definition asks the server for the tool, or returns nil.
func (l *loop) definition(ctx context.Context) *mcp.Tool {
	ctx = context.WithValue(withRules(ctx, l.call.rules), ownListKey{}, true)
	list := l.core.retry(l.next)
	params := &mcp.ListToolsParams{Meta: requestMeta(l.call.params().Meta)}
	for range maxListPages {
		res, err := list(ctx, "tools/list", &mcp.ClientRequest[mcp.Params]{Session: l.call.session, Params: params})
		page, ok := res.(*mcp.ListToolsResult)
		if err != nil || !ok || page == nil {
			return nil
		}
		for _, t := range page.Tools {
			if t != nil && t.Name == l.call.tool.Name {
				return t
			}
		}
		if page.NextCursor == "" || page.NextCursor == params.Cursor {
			return nil
		}
		params = &mcp.ListToolsParams{Meta: requestMeta(l.call.params().Meta), Cursor: page.NextCursor}
	}
	return nil
}

// listed notes that the SDK has the tool's definition now: what it lists, it sends.
func (c *core) listed(server string, t *mcp.Tool) {
	if t == nil {
		return
	}
	at := target{server, t.Name}
	if _, ok := c.headers.find(at); ok {
		c.headers.put(at, nil)
	}
	if r, ok := c.refreshes.find(at); ok {
		r.hope()
	}
}

// requestMeta is what the SDK has written into a request's _meta and every request of
// the session has to carry: version, client and capabilities.
func requestMeta(meta mcp.Meta) mcp.Meta {
	own := mcp.Meta{}
	for name, value := range meta {
		if strings.HasPrefix(name, "io.modelcontextprotocol/") {
			own[name] = value
		}
	}
	return own
}
