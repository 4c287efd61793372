package middleware

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"time"
)

// cancelTime bounds the telling of a server that nobody waits any more.
const cancelTime = 5 * time.Second

// cancel tells the server that a POST was given up because a limit of ours ran out. The
// SDK does so only when the caller's context ends. Up to 2025-11-25 a request is
// cancelled by a notification, and a closed connection means nothing; from 2026-07-28
// on closing the stream is the cancellation, which has happened (MCP, cancellation).
// Nobody waits for it.
func (t *Transport) cancel(p *post, limit *limitError) {
	version := p.request.Header.Get(headerProtocolVersion)
	if version == "" || version >= sessionlessVersion || isHandshake(p.envelope.method) {
		return
	}
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "method": "notifications/cancelled",
		"params": map[string]any{"requestId": json.RawMessage(p.envelope.id), "reason": limit.Error() + " ran out"},
	})
	if err != nil {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.request.Context()), cancelTime)
		defer cancel()
		req := p.request.Clone(ctx)
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		if resp, err := t.notify(req); err == nil && resp != nil && resp.Body != nil {
			drain(resp.Body)
		}
	}()
}
