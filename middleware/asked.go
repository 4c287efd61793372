package middleware

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/surecall/surecall/observe"
)

// maxAsked bounds the requests of a server on one stream for which its limits stand
// still.
const maxAsked = 64

// serverRequests are the requests of servers, on the streams of calls, that wait for
// the client's response (before 2026-07-28: elicitation, sampling, roots). Often a
// person has to answer. The response is a POST of its own: here it finds the call whose
// limits stand still meanwhile. The zero value is ready. It is safe for concurrent use.
type serverRequests struct {
	mu      sync.Mutex
	waiting map[serverRequest][]*watch
}

type serverRequest struct {
	endpoint, session, id string
}

// newServerRequest names a server's request with that id; req is a request of ours to
// the same server.
func newServerRequest(req *http.Request, id string) serverRequest {
	return serverRequest{observe.RedactURL(req.URL), req.Header.Get(headerSessionID), requestID(id)}
}

// requestID is one form of an id, however it is written.
func requestID(id string) string {
	var value any
	_ = json.Unmarshal([]byte(id), &value)
	switch value := value.(type) {
	case string:
		return `"` + value
	case float64:
		return strconv.FormatInt(int64(value), 10) // 1.0 and 1e0 are 1 to the SDK too (go-sdk v1.8.0)
	}
	return id
}

// ask pauses the limits of POSTs until the request is answered or forgotten.
func (s *serverRequests) ask(r serverRequest, watches ...*watch) (added bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.waiting[r]; ok {
		return false
	}
	if s.waiting == nil {
		s.waiting = map[serverRequest][]*watch{}
	}
	s.waiting[r] = watches
	for _, w := range watches {
		w.pause()
	}
	return true
}

// full reports whether a server has asked for so much that no more is waited for.
func (s *serverRequests) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) >= maxAsked
}

// answer lets the limits go on.
func (s *serverRequests) answer(r serverRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.waiting[r] {
		w.resume()
	}
	delete(s.waiting, r)
}

// ask notes that the server wants something of the client before it goes on. From
// 2026-07-28 on no server may, and none has the limits stand still.
func (g *streamGuard) ask(data []byte) {
	_, id, _, ok := observe.Envelope(data)
	if !ok || g.post.version >= sessionlessVersion || len(g.asked) >= maxAsked {
		return
	}
	if r := newServerRequest(g.post.request, id); g.transport.requests.ask(r, &g.post.watch) {
		g.asked = append(g.asked, r)
	}
}

// forget ends the waiting with the stream.
func (g *streamGuard) forget() {
	for _, r := range g.asked {
		g.transport.requests.answer(r)
	}
	g.asked = nil
}

// ask notes that the server wants something of the client. On a connection that all
// calls share nothing says for which of them, so that the limits of all stand still.
func (c *connection) ask(m jsonrpc.Message) {
	r, ok := m.(*jsonrpc.Request)
	version := c.calls.protocol()
	if !ok || !r.IsCall() || version == "" || version >= sessionlessVersion || c.requests.full() {
		return
	}
	var watches []*watch
	for _, p := range c.calls.all() {
		watches = append(watches, &p.post.watch)
	}
	if len(watches) > 0 {
		c.requests.ask(pipedRequest(r.ID), watches...)
	}
}

// answered notes that the client has done so.
func (c *connection) answered(m jsonrpc.Message) {
	if r, ok := m.(*jsonrpc.Response); ok {
		c.requests.answer(pipedRequest(r.ID))
	}
}

// pipedRequest names a request of the server on a connection without HTTP.
func pipedRequest(id jsonrpc.ID) serverRequest {
	text, _ := json.Marshal(id.Raw()) // an int64 or a string
	return serverRequest{id: requestID(string(text))}
}
