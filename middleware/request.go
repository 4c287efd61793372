package middleware

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/surecall/surecall/observe"
)

// envelopePrefix is how much of a request body is looked at first. The SDK writes
// jsonrpc, id and method before params (go-sdk v1.8.0), so this is enough.
const envelopePrefix = 512

// maxRequest bounds a request body that has to be read whole to know what it is.
const maxRequest = 256 << 20

// envelope is what the Transport needs to know of a request.
type envelope struct {
	kind   observe.MessageKind
	id     string // as JSON
	method string
}

// mayCarryMessage reports whether a request can be a JSON-RPC message. Others,
// such as an OAuth token request through the same client, are none of ours.
func mayCarryMessage(req *http.Request) bool {
	return req.Method == http.MethodPost && req.Body != nil && mediaType(req.Header) == "application/json"
}

// rewindable returns a request whose body can be read more than once. The SDK's
// own requests are so already; for another client's the body is held.
func rewindable(req *http.Request) (*http.Request, error) {
	if req.GetBody != nil {
		return req, nil
	}
	data, err := io.ReadAll(io.LimitReader(req.Body, maxRequest+1))
	if err = errors.Join(err, req.Body.Close()); err != nil {
		return nil, fmt.Errorf("surecall: reading the request body: %w", err)
	}
	if len(data) > maxRequest {
		return nil, fmt.Errorf("surecall: the request body is larger than %d bytes", maxRequest)
	}
	held := *req
	held.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	held.Body, _ = held.GetBody()
	return &held, nil
}

// prefixes are buffers for the beginnings of request bodies.
var prefixes = sync.Pool{New: func() any { return new([envelopePrefix]byte) }}

// readEnvelope reads id and method of a rewindable request. ok is false for a body
// that is not a JSON-RPC message.
func readEnvelope(req *http.Request) (e envelope, ok bool) {
	buf := prefixes.Get().(*[envelopePrefix]byte)
	defer prefixes.Put(buf)
	body, err := req.GetBody()
	if err != nil {
		return envelope{}, false
	}
	defer body.Close()
	n, err := io.ReadFull(body, buf[:])
	if e.kind, e.id, e.method, ok = observe.Envelope(buf[:n]); ok || err != nil {
		return e, ok
	}
	rest, err := io.ReadAll(io.LimitReader(body, maxRequest))
	if err != nil {
		return envelope{}, false
	}
	e.kind, e.id, e.method, ok = observe.Envelope(append(buf[:n:n], rest...))
	return e, ok
}
