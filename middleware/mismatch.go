package middleware

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/policy"
)

// maxListPages bounds how far a list of tools is read for one definition.
const maxListPages = 1000

// refresh fetches the tool's definition afresh where the server says that the call's
// headers do not match it (-32020, MCP 2026-07-28) and that may be sent again: the
// Mcp-Param-* headers of the next POSTs are built from it, below the SDK. The SDK
// itself would look the tool up in its own cache, before the middlewares run, and
// ListTools answers from there too (go-sdk v1.8.0); so the list is asked for here.
func (l *loop) refresh(ctx context.Context, q policy.Attempt) {
	cl := l.call
	if l.refreshSpent || cl.session == nil || cl.protocolVersion() < sessionlessVersion || !cl.tool.CuredByRefresh(q) {
		return
	}
	t := l.definition(ctx)
	if t == nil {
		return
	}
	if headers, ok := paramHeadersOf(t); ok {
		l.core.headers.put(target{cl.server.name, cl.tool.Name}, headers)
		l.refreshed = true
	}
}

// definition asks the server for the tool, or returns nil.
func (l *loop) definition(ctx context.Context) *mcp.Tool {
	list, ctx := l.core.retry(l.next), withRules(ctx, l.call.rules)
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
