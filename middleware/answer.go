package middleware

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"regexp"
	"time"

	"github.com/surecall/surecall/observe"
)

const (
	// errorBodyLimit and errorBodyTime bound the body of a response outside 2xx: its
	// status is known and must not be lost to a body that never comes.
	errorBodyLimit = 64 << 10
	errorBodyTime  = time.Second

	// excerptSize is how much of an unusable body a record keeps.
	excerptSize = 512

	// maxLocation bounds the origin of a redirect, in bytes.
	maxLocation = 300

	// firstRead is how much of an announced body is allocated before any of it has
	// come.
	firstRead = 1 << 20

	// maxAnnounced bounds what is allocated at once; a longer body grows as it comes.
	maxAnnounced = 256 << 20
)

// answer guards the response to a call.
func (t *Transport) answer(p *post, resp *http.Response) (*http.Response, error) {
	p.look(resp)
	if resp.StatusCode/100 != 2 {
		return t.refusal(p, resp)
	}
	p.heedHead(resp.Header)
	if p.media == "text/event-stream" && !coded(resp.Header) {
		return t.stream(p, resp), nil
	}
	return t.document(p, resp)
}

// document reads a whole body and judges it before the SDK sees a byte.
func (t *Transport) document(p *post, resp *http.Response) (*http.Response, error) {
	body, err := readBody(resp, p.tool.MaxResult, p.watch.heard)
	resp.Body.Close()
	defer p.end()
	p.update(func(s *observe.Post) { s.Bytes = int64(len(body)) })
	switch {
	case errors.Is(err, errTooLarge):
		p.conclude(tooLarge())
		return nil, p.err()
	case err != nil:
		p.broken(observe.StreamIncomplete, cutReason(resp.Uncompressed, "the body was cut short"), err, false)
		p.excerpt(body)
		return nil, p.err()
	}
	q := p.question()
	q.Status, q.Header, q.Body = resp.StatusCode, contentHeader(resp.Header), body
	v := observe.Classify(q, &p.tool.Reading)
	p.weigh(&v, body)
	p.limitRounds(&v)
	p.conclude(v)
	if !v.Outcome.Answered() {
		p.excerpt(body)
		return nil, p.err()
	}
	setBody(resp, p.rewritten(body, &v))
	return resp, nil
}

// cutReason names a body that net/http could not decompress to its end (it asks for gzip
// by itself and undoes it): HTTP may well say that such a body is complete.
func cutReason(compressed bool, otherwise string) string {
	if compressed {
		return "the compressed body was cut short or is not what it says"
	}
	return otherwise
}

// rewritten is a message as the SDK is to read it.
func (p *post) rewritten(message []byte, v *observe.Verdict) []byte {
	switch {
	case v.Outcome == observe.JSONRPCError:
		return errorMessage(p.envelope.id, v.Error)
	case p.putOff(v):
		return resultMessage(p.envelope.id, withoutRequests(v.Result))
	}
	return message
}

// refusal turns a response outside 2xx into an error, except where the HTTP client
// or the SDK has to see it.
func (t *Transport) refusal(p *post, resp *http.Response) (*http.Response, error) {
	defer p.end()
	p.update(func(s *observe.Post) {
		s.Location = observe.Redact(observe.URLOrigin(location(p.request, resp)), maxLocation)
	})
	if redirection(p.request, resp) != nil {
		p.heedHead(resp.Header)
		v := observe.Classify(observe.Answer{Status: resp.StatusCode}, nil)
		if _, n := redirects(p.request); n >= maxRedirects-1 {
			v.Reason = "the server redirects again and again"
		}
		p.conclude(v)
		drain(resp.Body)
		// For the SDK, should the host's client not follow after all.
		setBody(resp, synthetic(p.envelope.id, p.err()))
		return resp, nil
	}
	body := readErrorBody(resp)
	p.update(func(s *observe.Post) { s.Bytes = int64(len(body)) })
	q := p.question()
	q.Status, q.Header, q.Body = resp.StatusCode, resp.Header, body
	v := observe.Classify(q, &p.tool.Reading)
	p.weigh(&v, body)
	p.heedRefusal(resp.Header, &v)
	p.conclude(v)
	p.excerpt(body)
	switch {
	case isAuth(resp.StatusCode):
		setBody(resp, synthetic(p.envelope.id, p.err()))
	case !p.isCall() && v.Error != nil && v.EchoedID:
		// What other methods get in the body of a refusal the SDK reports by itself.
		setBody(resp, body)
	default:
		return nil, p.err()
	}
	return resp, nil
}

// excerpt keeps the redacted beginning of an unusable body, but never a part of a
// result: what a tool said is not for records.
func (p *post) excerpt(body []byte) {
	head := body[:min(len(body), 8*excerptSize)]
	if p.media != "text/html" {
		head = beforeResult(head)
	}
	if len(head) == 0 {
		return
	}
	text := p.redactor().Text(string(head), excerptSize)
	p.update(func(s *observe.Post) { s.Excerpt = text })
}

// resultMark is where a tool's words can begin in a message, at the latest: with the
// member itself, however it is written, or with an escape that could hide its name.
var resultMark = regexp.MustCompile(`(?i)"(?:result|content|structuredContent)"|\\u`)

func beforeResult(body []byte) []byte {
	if at := resultMark.FindIndex(body); at != nil {
		return body[:at[0]]
	}
	return body
}

var (
	errTooLarge   = errors.New("the body is larger than the limit")
	errNotResumed = errors.New("the server did not resume the stream")
)

func tooLarge() observe.Verdict {
	return observe.Verdict{Outcome: observe.ResultTooLarge, Delivery: observe.Unknown, Reason: "the answer is larger than the limit"}
}

// readBody reads a body of at most limit bytes; a limit of 0 is none. What it read
// comes with the error too. An announced length is allocated at once only where
// it is small or its beginning has come: a server must not make us allocate what
// it does not send.
func readBody(resp *http.Response, limit int64, heard func(int)) ([]byte, error) {
	if limit > 0 && resp.ContentLength > limit {
		return nil, errTooLarge
	}
	src := &hearing{resp.Body, heard}
	if resp.ContentLength > 0 && resp.ContentLength <= maxAnnounced {
		return readAnnounced(src, resp.ContentLength)
	}
	if limit <= 0 || limit == math.MaxInt64 {
		return io.ReadAll(src)
	}
	body, err := io.ReadAll(io.LimitReader(src, limit+1))
	if int64(len(body)) > limit {
		return nil, errTooLarge
	}
	return body, err
}

// readAnnounced reads a body whose length is announced; net/http sees to it that
// no more comes.
func readAnnounced(src io.Reader, length int64) ([]byte, error) {
	body := make([]byte, min(length, firstRead))
	n, err := io.ReadFull(src, body)
	if err == nil && length > firstRead {
		whole := make([]byte, length)
		copy(whole, body)
		body = whole
		var m int
		m, err = io.ReadFull(src, body[firstRead:])
		n += m
	}
	return body[:n], err
}

// hearing tells the limits that bytes have come.
type hearing struct {
	io.Reader
	heard func(n int)
}

func (h *hearing) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b)
	if n > 0 {
		h.heard(n)
	}
	return n, err
}

// readErrorBody reads the beginning of the body of a refusal and closes it.
func readErrorBody(resp *http.Response) []byte {
	if resp.StatusCode < http.StatusOK {
		resp.Body.Close() // after 101 comes another protocol, not a body
		return nil
	}
	timer := time.AfterFunc(errorBodyTime, func() { resp.Body.Close() })
	defer timer.Stop()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, errorBodyLimit))
	resp.Body.Close()
	return body
}

// drain reads a little of a body that nobody needs, so that its connection can be
// used again, and closes it.
func drain(body io.ReadCloser) {
	timer := time.AfterFunc(drainTime, func() { body.Close() })
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, body, drainLimit)
	body.Close()
}

// watchedBody is a body that is handed on as it is; the POST ends when it is
// closed.
type watchedBody struct {
	io.ReadCloser
	post *post
}

func (b *watchedBody) Read(buf []byte) (int, error) {
	n, err := b.ReadCloser.Read(buf)
	if n > 0 {
		b.post.watch.heard(n)
	}
	return n, err
}

func (b *watchedBody) Close() error {
	defer b.post.end()
	return b.ReadCloser.Close()
}

// contentHeader is the header as the classifier should judge it. A missing type is
// no JSON, for the SDK refuses it; nor is a body in a coding that net/http did not
// undo, whatever its type says.
func contentHeader(h http.Header) http.Header {
	if h.Get("Content-Type") == "" || coded(h) {
		return http.Header{"Content-Type": {"application/octet-stream"}}
	}
	return h
}

// coded reports whether a body is in a content coding.
func coded(h http.Header) bool {
	coding := h.Get("Content-Encoding")
	return coding != "" && coding != "identity"
}

func mediaType(h http.Header) string {
	switch media := h.Get("Content-Type"); media {
	case "application/json", "text/event-stream":
		return media
	}
	media, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return media
}

// errorMessage writes a JSON-RPC error response in the form that the SDK reads.
func errorMessage(id string, e *observe.RPCError) []byte {
	type wireError struct {
		Code    int64           `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data,omitempty"`
	}
	body, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   wireError       `json:"error"`
	}{"2.0", json.RawMessage(id), wireError{e.Code, e.Message, e.Data}})
	if err != nil {
		return rejection(id, "the error of the server cannot be passed on")
	}
	return body
}
