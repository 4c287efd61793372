package middleware

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// healWait is the least time between two renewals of a session: a server that loses
	// it again and again is not asked for one after the other. Where that does not help
	// the wait doubles, up to healWaitMax.
	healWait    = time.Second
	healWaitMax = 30 * time.Second

	// checkedFor is how long a session that was found alive is not checked again for
	// anything but a 404.
	checkedFor = time.Second
)

// An httpSession is one session with a server that has sessions (MCP 2025-11-25 and
// earlier), as it is known below the SDK. It can be renewed: the SDK goes on to see
// the id of its first handshake, and what it sends goes out under the current one.
// What a request asks of it may be asked of nil too, a session that is not known. It is
// safe for concurrent use, and holds no lock while anything is on the wire.
type httpSession struct {
	transport *Transport
	server    string // what the host calls it
	shown     string // the id that the SDK knows
	opening   opening

	life context.Context // ends when the SDK ends the session
	end  context.CancelFunc

	proven atomic.Int64 // the last generation that a request was served in

	mu         sync.Mutex
	client     weak.Pointer[mcp.ClientSession] // zero where no middleware is in use
	lease      lease
	expire     context.CancelFunc // ends lease.over
	flight     *flight            // the check or renewal under way, or nil
	lost       string             // why nothing is sent; empty where the session is alive
	final      bool               // it will not be renewed
	notBefore  time.Time          // when it may be renewed again
	wait       time.Duration
	alive      time.Time // when it was last found alive
	credential string    // the Authorization that a request carried last
}

// A lease is one of the ids under which a session has been known.
type lease struct {
	id         string
	generation int64
	over       context.Context // ends when the lease does
}

// A flight checks whether a session is lost, and renews it. There is one at a time,
// whoever waits for it.
type flight struct {
	done    chan struct{}
	certain bool    // the session is known to be lost; guarded by httpSession.mu
	found   finding // to be read when done is closed
}

// A finding is what came out about a session that seemed lost.
type finding int

const (
	unclear finding = iota // nobody can say
	alive
	gone    // lost, and not renewed
	renewed // lost, and renewed
)

// open begins the first generation.
func (s *httpSession) open(id string) {
	s.shown = id
	s.life, s.end = context.WithCancel(context.Background())
	s.begin(id, 0)
}

// pass returns the lease under which a request goes out. It waits while the session
// is being renewed, and has a lost one renewed if that may be tried again: what has
// not been sent need not be repeated. helped says that it did so. Where nothing may
// be sent the error is a *lostError, or that of the context.
func (s *httpSession) pass(ctx context.Context, req *http.Request) (l lease, helped bool, err error) {
	if s == nil {
		return lease{}, false, nil
	}
	restoring := isRestoring(ctx, s)
	for {
		f, now, err := s.enter(req, restoring)
		if f == nil {
			return now, helped, err
		}
		if !await(ctx, f.done) {
			return lease{}, false, ctx.Err()
		}
		helped = f.found == renewed
	}
}

// enter returns the current lease, or the flight that has to land before.
func (s *httpSession) enter(req *http.Request, restoring bool) (*flight, lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := req.Header.Get("Authorization"); a != "" && req.Method == http.MethodPost {
		s.credential = a
	}
	switch {
	case restoring:
		return nil, s.lease, nil
	case s.flight != nil && s.flight.certain:
		return s.flight, lease{}, nil
	case s.lost == "":
		return nil, s.lease, nil
	case s.final || time.Now().Before(s.notBefore):
		return nil, lease{}, &lostError{s.lost}
	}
	return s.launch(req, true), lease{}, nil
}

// lostError says why nothing is sent on a session.
type lostError struct{ reason string }

func (e *lostError) Error() string { return e.reason }

// examine finds out what an answer means that looks as if the session was lost; plain
// is one that says so, such as a 404. The request was sent under l, and waits no longer
// than ctx. A session whose renewal was of no use is not renewed again at once:
// such an answer is then what it is.
func (s *httpSession) examine(ctx context.Context, req *http.Request, l lease, plain bool) finding {
	f, found := s.suspect(req, l, plain)
	switch {
	case f == nil:
		return found
	case !await(ctx, f.done):
		return s.meanwhile(f)
	}
	return f.found
}

// meanwhile is what a flight has found out while it is under way.
func (s *httpSession) meanwhile(f *flight) finding {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.certain {
		return gone // and not renewed yet
	}
	return unclear
}

// suspect returns what is known already, or the flight that will tell.
func (s *httpSession) suspect(req *http.Request, l lease, plain bool) (f *flight, found finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch {
	case isRestoring(req.Context(), s), s.ended():
		found = gone // the flight waits for this very request, or nobody does
	case s.flight != nil:
		f = s.flight
	case l.generation < s.lease.generation:
		found = renewed
	case s.lost != "":
		found = gone
	case now.Before(s.notBefore) && s.useless():
		found = unclear // which is not asked at once
	case !plain && now.Sub(s.alive) < checkedFor:
		found = alive
	default:
		f = s.launch(req, false)
	}
	if found == gone && !plain {
		found = unclear
	}
	return f, found
}

// launch starts a flight. s.mu is held.
func (s *httpSession) launch(req *http.Request, certain bool) *flight {
	f := &flight{done: make(chan struct{}), certain: certain}
	s.flight = f
	r := &renewal{
		session: s, flight: f, lease: s.lease,
		policy: s.transport.core.rules.Load().Reads(s.server).Session,
		pause:  min(time.Until(s.notBefore), healWait),
		hand:   req.Clone(context.WithoutCancel(req.Context())),
	}
	go r.run()
	return f
}

// land ends a flight.
func (s *httpSession) land(f *flight, found finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found == alive {
		s.alive = time.Now()
	}
	s.flight, f.found = nil, found
	close(f.done)
}

// confirm says that the session is lost: from now on everything waits for the flight.
func (s *httpSession) confirm(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.certain = true
}

// renew begins the next generation.
func (s *httpSession) renew(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold(s.useless())
	s.lost = ""
	s.begin(id, s.lease.generation+1)
}

// lose lets nothing out until the session can be renewed; final is never.
func (s *httpSession) lose(reason string, final bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold(s.lost != "" || s.useless())
	s.lost, s.final = reason, final
}

// leave lets requests out again, although the session is lost: they shall hear what the
// renewal heard.
func (s *httpSession) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold(false)
	s.lost = ""
}

// hold keeps the session from being renewed for a time, longer than the last time
// where that did not help. s.mu is held.
func (s *httpSession) hold(longer bool) {
	if !longer {
		s.wait = 0
	}
	s.wait = min(max(2*s.wait, healWait), healWaitMax)
	s.notBefore = time.Now().Add(s.wait)
}

// useless reports whether the last renewal was of no use: nothing has been served since.
// s.mu is held.
func (s *httpSession) useless() bool { return s.proven.Load() < s.lease.generation }

// begin opens a lease. s.mu is held, or nobody knows s yet.
func (s *httpSession) begin(id string, generation int64) {
	if s.expire != nil {
		s.expire()
	}
	s.lease = lease{id: id, generation: generation}
	s.lease.over, s.expire = context.WithCancel(s.life)
}

// serve says that a request of the lease was served.
func (s *httpSession) serve(l lease) {
	if s == nil {
		return
	}
	for last := s.proven.Load(); last < l.generation && !s.proven.CompareAndSwap(last, l.generation); {
		last = s.proven.Load()
	}
}

// current returns the lease, whatever its state.
func (s *httpSession) current() lease {
	if s == nil {
		return lease{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease
}

// ended reports whether the SDK has ended the session.
func (s *httpSession) ended() bool { return s != nil && s.life.Err() != nil }

// credentials is the Authorization that a request of the session carried last, or "".
func (s *httpSession) credentials() string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.credential
}

// belong says whose session it is.
func (s *httpSession) belong(cs *mcp.ClientSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = weak.Make(cs)
}

// under returns the request as it goes out under a lease.
func (s *httpSession) under(req *http.Request, l lease) *http.Request {
	if s == nil || l.id == s.shown {
		return req
	}
	out := *req
	out.Header = withHeaders(req.Header, map[string]string{headerSessionID: l.id})
	return &out
}

// show gives an answer the id that the SDK knows.
func (s *httpSession) show(resp *http.Response, l lease) {
	if s != nil && resp.Header.Get(headerSessionID) == l.id && l.id != s.shown {
		resp.Header.Set(headerSessionID, s.shown)
	}
}

func await(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
