package middlewaretest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"sync"
)

// maxSessions bounds the sessions that a server remembers; beyond it the oldest
// is forgotten.
const maxSessions = 10_000

// A session is one client's session on a 2025-11-25 server.
type session struct {
	id           string
	capabilities json.RawMessage // what the client announced
	play         *play           // the scenario that held when the session began
	life         context.Context // ends with the session
	end          context.CancelFunc
}

// sessions are those that the server knows.
type sessions struct {
	mu    sync.Mutex
	known map[string]*session
	order []string // by age, ended ones included
	last  *session // the newest, which stands for all on a server without ids
}

func newSessions() *sessions { return &sessions{known: map[string]*session{}} }

// Sessions returns the number of sessions that the server knows.
func (s *Server) Sessions() int {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	return len(s.sessions.known)
}

// ForgetSessions makes the server forget every session, as a restart would:
// their streams end, and their requests get 404.
func (s *Server) ForgetSessions() {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	for id, sess := range s.sessions.known {
		sess.end()
		delete(s.sessions.known, id)
	}
	s.sessions.order = nil
}

// openSession begins a session for an initialize request.
func (x *exchange) openSession() {
	sess := &session{id: rand.Text(), capabilities: x.p.Capabilities, play: x.play}
	x.session = sess
	if !x.s.opts.Sessions {
		sess.life = x.s.life
		x.s.sessions.setNewest(sess)
		return
	}
	sess.life, sess.end = context.WithCancel(x.s.life)
	x.s.sessions.add(sess)
	x.w.Header().Set("Mcp-Session-Id", sess.id)
	x.s.ledger.update(func() { x.entry.Session = sess.id })
}

func (a *sessions) add(sess *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.order) >= maxSessions {
		a.drop(a.order[0])
		a.order = a.order[1:]
	}
	a.known[sess.id] = sess
	a.order = append(a.order, sess.id)
}

func (a *sessions) setNewest(sess *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = sess
}

// drop ends a session and reports whether there was one. a.mu is held.
func (a *sessions) drop(id string) bool {
	sess := a.known[id]
	if sess == nil {
		return false
	}
	sess.end()
	delete(a.known, id)
	return true
}

func (a *sessions) get(id string) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known[id]
}

func (a *sessions) newest() *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}

// joinSession finds the session of a request. It answers, and returns false,
// where a session is needed and there is none: 400 without an id, 404 for one
// that is not known (MCP 2025-11-25, session management).
func (x *exchange) joinSession() bool {
	switch {
	case x.s.opts.stateless():
		return true
	case !x.s.opts.Sessions:
		x.session = x.s.sessions.newest()
		return true
	case x.msg.Method == "initialize" || x.msg.Method == "server/discover":
		return true
	}
	id := x.r.Header.Get("Mcp-Session-Id")
	if id == "" {
		x.text(http.StatusBadRequest, "missing Mcp-Session-Id")
		return false
	}
	x.session = x.s.sessions.get(id)
	if x.session == nil {
		x.refuseSession()
		return false
	}
	x.s.ledger.update(func() { x.entry.Session = id })
	return true
}

func (x *exchange) refuseSession() {
	f := x.s.opts.UnknownSession
	if f == nil {
		x.text(http.StatusNotFound, "session not found")
		return
	}
	x.s.ledger.update(func() { x.entry.Fault = f.Name })
	x.emit(f, func() { x.text(http.StatusNotFound, "session not found") })
}

// endSession answers DELETE.
func (x *exchange) endSession() {
	if !x.s.opts.Sessions {
		x.notAllowed()
		return
	}
	if !x.joinSession() {
		return
	}
	all := x.s.sessions
	all.mu.Lock()
	all.drop(x.session.id)
	all.mu.Unlock()
	x.status(http.StatusNoContent)
}
