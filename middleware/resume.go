package middleware

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"

	"github.com/surecall/surecall/observe"
)

const (
	// resumeWait is the wait before a stream is resumed where the server named none
	// (the SSE standard's "retry"). A server's own is kept within bounds.
	resumeWait    = time.Second
	resumeWaitMin = 100 * time.Millisecond
	resumeWaitMax = 30 * time.Second
	// maxResumptions bounds how often one stream is resumed.
	maxResumptions = 100
)

// resumable reports whether a stream that ended can go on: the version has
// resumption, an event id was seen, the last resumption brought something new, and
// the call is alive.
func (g *streamGuard) resumable() bool {
	version := g.post.request.Header.Get(headerProtocolVersion)
	isNew := g.resumed == 0 || g.lastID != g.from // a replay of what came before is not
	return g.hasID && isNew && g.resumed < maxResumptions && version != "" && version < sessionlessVersion &&
		g.post.watch.ctx.Err() == nil
}

// canResumeAt reports whether an event id can be sent back, as the value of a header (RFC
// 9110, section 5.5). One that cannot is none; net/http would refuse the request.
func canResumeAt(id string) bool {
	return !strings.ContainsFunc(id, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// resume asks for the rest of the stream by GET with Last-Event-ID (MCP
// 2025-11-25, transports). It repeats nothing: a GET never runs a tool. A server
// that does not go on ends the call, not the session.
func (g *streamGuard) resume() {
	g.src.Close()
	g.from = g.lastID
	g.resumed++
	g.post.watch.hold()
	wait := resumeWait
	if g.wait > 0 {
		wait = min(max(g.wait, resumeWaitMin), resumeWaitMax)
	}
	if deadline, ok := g.post.watch.ctx.Deadline(); ok && time.Until(deadline) <= wait {
		g.incomplete(errNotResumed)
		return
	}
	if !sleep(g.post.watch.ctx, wait) {
		g.incomplete(context.Cause(g.post.watch.ctx))
		return
	}
	g.post.watch.again()
	resp, err := g.transport.follow(g.resumption())
	if err != nil {
		g.incomplete(err)
		return
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp.Header) != "text/event-stream" {
		drain(resp.Body)
		g.incomplete(errNotResumed)
		return
	}
	g.post.watch.reading()
	g.post.update(func(s *observe.Post) { s.Stream.Resumed++ })
	g.compressed = resp.Uncompressed
	g.attach(resp.Body)
}

// resumption is the GET that goes on with the stream: same endpoint, same headers,
// no body.
func (g *streamGuard) resumption() *http.Request {
	ctx := httptrace.WithClientTrace(g.post.watch.ctx, g.post.watch.trace())
	req := g.post.session.under(g.post.request, g.post.lease).Clone(ctx)
	req.Method, req.Body, req.GetBody, req.ContentLength = http.MethodGet, nil, nil, 0
	req.Header.Del("Content-Type")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set(headerLastEventID, g.lastID)
	return req
}

// sleep waits for d and reports false if the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
