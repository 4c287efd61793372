package middleware

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

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
	media, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	return req.Method == http.MethodPost && req.Body != nil && err == nil && media == "application/json"
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

// readEnvelope reads id and method of a rewindable request. ok is false for a body
// that is not a JSON-RPC message.
func readEnvelope(req *http.Request) (e envelope, ok bool) {
	for _, n := range []int64{envelopePrefix, maxRequest} {
		body, err := req.GetBody()
		if err != nil {
			return envelope{}, false
		}
		prefix, err := io.ReadAll(io.LimitReader(body, n))
		body.Close()
		if err != nil {
			return envelope{}, false
		}
		if e.kind, e.id, e.method, ok = observe.Envelope(prefix); ok {
			return e, true
		}
		if int64(len(prefix)) < n {
			break
		}
	}
	return envelope{}, false
}
