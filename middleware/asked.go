package middleware

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"

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
	waiting map[serverRequest]*watch
}

type serverRequest struct {
	endpoint, session, id string
}

// newServerRequest names a server's request with that id; req is a request of ours to
// the same server.
func newServerRequest(req *http.Request, id string) serverRequest {
	var value any
	_ = json.Unmarshal([]byte(id), &value)
	switch value := value.(type) {
	case string:
		id = `"` + value // however it is escaped
	case float64:
		id = strconv.FormatInt(int64(value), 10) // 1.0 and 1e0 are 1 to the SDK too (go-sdk v1.8.0)
	}
	return serverRequest{observe.RedactURL(req.URL), req.Header.Get(headerSessionID), id}
}

// ask pauses the limits of a POST until the request is answered or forgotten.
func (s *serverRequests) ask(r serverRequest, w *watch) (added bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.waiting[r]; ok {
		return false
	}
	if s.waiting == nil {
		s.waiting = map[serverRequest]*watch{}
	}
	s.waiting[r] = w
	w.pause()
	return true
}

// answer lets the limits go on.
func (s *serverRequests) answer(r serverRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w, ok := s.waiting[r]; ok {
		delete(s.waiting, r)
		w.resume()
	}
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
