package middleware

import (
	"context"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/observe"
)

// This file is all that knows Options.Observer: what it is told, and that nothing it
// does ends a call.

// contained swallows the panic of an observer's function.
func contained() { _ = recover() }

// observed is a call or an attempt that was announced to the observer; the zero value
// is one that was not.
type observed[T any] struct{ ended func(*T) }

// end tells what was announced to have come to its end, once.
func (o *observed[T]) end(v *T) {
	ended := o.ended
	if o.ended = nil; ended == nil {
		return
	}
	defer contained()
	ended(v)
}

// observeCall announces a call. Its end must be told, with nil where it panics.
func (c *core) observeCall(ctx context.Context, cl *call) (in context.Context, seen observed[observe.Record]) {
	o := c.opts.Observer
	if in = ctx; o == nil || o.CallStarted == nil {
		return in, seen
	}
	defer contained()
	start := observe.CallStart{
		Started:         cl.started,
		Server:          cl.server.shownName,
		Endpoint:        cl.server.shownEndpoint,
		Tool:            cl.tool.Name,
		Safety:          string(cl.tool.Safety),
		ProtocolVersion: cl.protocolVersion(),
	}
	if cl.session != nil && start.ProtocolVersion < sessionlessVersion {
		start.SessionID = cl.session.ID()
	}
	got, ended := o.CallStarted(ctx, start)
	if got != nil {
		in = got
	}
	seen.ended = ended
	return in, seen
}

// observeAttempt announces an attempt of a tools/call, and adds what the observer gives
// it to the request's _meta until the attempt has ended.
func (c *core) observeAttempt(ctx context.Context, cl *call) (in context.Context, seen observed[observe.AttemptEnd]) {
	o := c.opts.Observer
	if in = ctx; o == nil || o.AttemptStarted == nil || !cl.isTool() {
		return in, seen
	}
	defer contained()
	start := observe.AttemptStart{Number: len(cl.attempts) + 1, Waits: cl.waits}
	if p := cl.params(); p != nil {
		start.Meta = p.Meta
	}
	got, meta, ended := o.AttemptStarted(ctx, start)
	if got != nil {
		in = got
	}
	added := c.addMeta(cl, meta)
	seen.ended = func(e *observe.AttemptEnd) {
		cl.dropMeta(added)
		if ended != nil {
			ended(e)
		}
	}
	return in, seen
}

// addMeta adds members to the request's _meta, without touching those it has, and
// returns which. In shadow mode it adds nothing.
func (c *core) addMeta(cl *call, more map[string]string) (added []string) {
	p := cl.params()
	if p == nil || len(more) == 0 || c.opts.Shadow {
		return nil
	}
	params := *p
	params.Meta = maps.Clone(p.Meta)
	if params.Meta == nil {
		params.Meta = mcp.Meta{}
	}
	for name, value := range more {
		if _, taken := params.Meta[name]; !taken {
			params.Meta[name] = value
			added = append(added, name)
		}
	}
	cl.replace(&params)
	return added
}

// dropMeta takes members out of the request's _meta again; whatever else the attempt
// has changed in the request stays.
func (cl *call) dropMeta(added []string) {
	if len(added) == 0 {
		return
	}
	params := *cl.params()
	params.Meta = maps.Clone(params.Meta)
	for _, name := range added {
		delete(params.Meta, name)
	}
	cl.replace(&params)
}

// attemptEnd tells the observer of the attempt that was just made.
func (cl *call) attemptEnd() *observe.AttemptEnd {
	a := &cl.attempts[len(cl.attempts)-1]
	records := cl.attemptRecords()
	e := &observe.AttemptEnd{Attempt: records[len(records)-1]}
	if a.RPC != nil {
		e.Code = new(a.RPC.Code)
	}
	if a.Post != nil {
		e.RequestID, e.HTTPVersion = a.Post.ID, a.Post.HTTPVersion
	}
	return e
}

// observeSession announces the session that a handshake opened. Where the observer
// wants to know of its end, a goroutine waits for that.
func (c *core) observeSession(ctx context.Context, cl *call, res mcp.Result) {
	o := c.opts.Observer
	version := opened(cl.request, res)
	if o == nil || o.SessionStarted == nil || version == "" || cl.session == nil {
		return
	}
	defer contained()
	srv := c.server(cl.session)
	ended := o.SessionStarted(ctx, observe.SessionStart{
		Started: cl.started, Server: srv.shownName, Endpoint: srv.shownEndpoint, ProtocolVersion: version,
	})
	if ended == nil {
		return
	}
	session := cl.session
	go func() {
		defer contained()
		ended(session.Wait())
	}()
}

// opened is the protocol version of the session that a handshake opened, or "": the
// SDK goes on to initialize where server/discover offers no version without sessions
// (go-sdk v1.8.0).
func opened(req mcp.Request, res mcp.Result) string {
	switch r := res.(type) {
	case *mcp.InitializeResult:
		return r.ProtocolVersion
	case *mcp.DiscoverResult:
		asked, _ := req.GetParams().GetMeta()[mcp.MetaKeyProtocolVersion].(string)
		for _, version := range []string{asked, sessionlessVersion} {
			if version >= sessionlessVersion && slices.Contains(r.SupportedVersions, version) {
				return version
			}
		}
	}
	return ""
}

// breakerObserver is what a breaker tells its changes to, or nil.
func (c *core) breakerObserver(cl *call, tool string) func(from, to string) {
	o := c.opts.Observer
	if o == nil || o.BreakerChanged == nil {
		return nil
	}
	server := cl.server.shownName
	return func(from, to string) {
		defer contained()
		o.BreakerChanged(observe.BreakerChange{Server: server, Tool: tool, From: from, To: to})
	}
}
