package middleware

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// A renewal makes sure that a session is lost, opens a new one by the handshake that
// opened the first, and lets the host restore what the server has forgotten. Nothing
// of it is a call: what met the loss is repeated, or not, by the loop above the SDK.
type renewal struct {
	session *httpSession
	policy  policy.EffectiveSession
	flight  *flight
	lease   lease         // that is in doubt
	pause   time.Duration // since the last renewal was a moment ago
	hand    *http.Request // met the loss: endpoint, credentials and context are its own
}

// A Renewal tells the host of a lost session that has been renewed.
type Renewal struct {
	// Server is what the host calls it.
	Server string
	// Session is the client's; it goes on as it was. Nil where the [Transport] is used
	// without the client middlewares.
	Session *mcp.ClientSession
}

type restoringKey struct{}

// isRestoring reports whether a request is a part of what the host restores.
func isRestoring(ctx context.Context, s *httpSession) bool {
	return ctx.Value(restoringKey{}) == s
}

// run takes the flight to its end.
func (r *renewal) run() {
	s := r.session
	ctx, cancel := context.WithCancel(r.hand.Context())
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	if d := r.policy.Timeout; d > 0 {
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	sleep(ctx, r.pause)
	s.land(r.flight, r.find(ctx))
}

func (r *renewal) find(ctx context.Context) finding {
	s := r.session
	if !r.flight.certain {
		if found := r.check(ctx); found != gone {
			return found
		}
		s.confirm(r.flight)
	}
	if !r.policy.Heal {
		s.lose("the session is lost, and the policy does not renew it", true)
		return gone
	}
	id, err := r.persist(ctx)
	var refused *statusError
	var changed *changedError
	switch {
	case errors.As(err, &refused) && isAuth(refused.status):
		s.leave() // the SDK can authorize, but only on a request of its own
		return gone
	case err != nil:
		s.lose("the session is lost and could not be renewed: "+reasonOf(err), errors.As(err, &changed))
		return gone
	}
	s.renew(id)
	r.restore(ctx)
	return renewed
}

// reasonOf is a reason in our own words.
func reasonOf(err error) string {
	var refused *statusError
	var changed *changedError
	switch {
	case errors.As(err, &refused), errors.As(err, &changed):
		return err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "the time for it ran out"
	}
	return "the handshake failed"
}

// check asks under the old id. Only a server that does not know it there either has
// lost the session.
func (r *renewal) check(ctx context.Context) finding {
	const id = `"surecall-ping"`
	resp, err := r.post(ctx, []byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`), r.lease.id)
	if err != nil {
		return unclear
	}
	body, v := judgeAnswer(resp, id, "ping")
	switch {
	case v.Outcome == observe.SessionLost, !v.Outcome.Usable() && r.session.losesBy(resp.StatusCode, v.Error, body):
		return gone
	case v.Outcome.Usable(), resp.StatusCode == http.StatusNotFound:
		return alive // a 404 that answers the ping does not know the method
	}
	return unclear
}

// openWait and openWaitMax are the waits between tries to open a session.
const (
	openWait    = 100 * time.Millisecond
	openWaitMax = time.Second
)

// persist tries to open a session until the time for it is over, as long as what stands
// in the way may pass by itself: a server that restarts is away for a while.
func (r *renewal) persist(ctx context.Context) (string, error) {
	_, limited := ctx.Deadline()
	for wait := openWait; ; wait = min(2*wait, openWaitMax) {
		id, err := r.open(ctx)
		if err == nil || !limited || !mayPass(err) || !sleep(ctx, wait) {
			return id, err
		}
	}
}

func mayPass(err error) bool {
	var refused *statusError
	var changed *changedError
	switch {
	case errors.As(err, &changed), errors.Is(err, errNoSession):
		return false
	case errors.As(err, &refused):
		return passing(refused.status)
	}
	return true // the connection failed
}

var errNoSession = errors.New("no session")

// open opens a session like the first one and returns its id.
func (r *renewal) open(ctx context.Context) (string, error) {
	first, ok := r.session.opening.introduction()
	if !ok {
		return "", &changedError{"what the server first said of itself is not known"}
	}
	resp, err := r.post(ctx, r.session.opening.request, "")
	if err != nil {
		return "", err
	}
	id := resp.Header.Get(headerSessionID)
	_, v := judgeAnswer(resp, r.session.opening.id, "initialize")
	now, ok := readIntroduction(v.Result)
	switch {
	case resp.StatusCode/100 != 2:
		return "", &statusError{resp.StatusCode}
	case !v.Outcome.Usable() || !ok || id == "":
		return "", errNoSession
	}
	if what := first.change(now); what != "" {
		r.dismiss(ctx, id)
		return "", &changedError{"the server is another one: " + what + " has changed"}
	}
	resp, err = r.post(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}`), id)
	if err != nil {
		return "", err
	}
	drain(resp.Body)
	if resp.StatusCode/100 != 2 {
		r.dismiss(ctx, id)
		return "", &statusError{resp.StatusCode}
	}
	return id, nil
}

type statusError struct{ status int }

func (e *statusError) Error() string { return fmt.Sprintf("HTTP status %d", e.status) }

// changedError says why a session can never be renewed.
type changedError struct{ what string }

func (e *changedError) Error() string { return e.what }

// restore lets the host restore the server's state, and waits for it while there is
// time.
func (r *renewal) restore(ctx context.Context) {
	s := r.session
	hook := s.transport.core.opts.OnHealed
	if hook == nil {
		return
	}
	s.mu.Lock()
	tell := Renewal{Server: s.server, Session: s.client.Value()}
	s.mu.Unlock()
	// Values of the call that met the loss are none of the host's business here.
	own, cancel := context.WithCancel(context.WithValue(s.life, restoringKey{}, s))
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok {
		own, cancel = context.WithDeadline(own, deadline)
		defer cancel()
	}
	done := make(chan struct{})
	go func() { defer close(done); hook(own, tell) }()
	await(own, done)
}

// post sends a message of the renewal's own, under an id or none. Credentials are
// those of the request at hand, of whatever kind.
func (r *renewal) post(ctx context.Context, body []byte, session string) (*http.Response, error) {
	req := r.hand.Clone(ctx)
	req.Method = http.MethodPost
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, _ = req.GetBody()
	req.ContentLength = int64(len(body))
	version := req.Header.Get(headerProtocolVersion)
	for name := range req.Header {
		if strings.HasPrefix(name, "Mcp-") {
			req.Header.Del(name)
		}
	}
	req.Header.Del(headerLastEventID)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set(headerSessionID, session)
		req.Header.Set(headerProtocolVersion, version)
	}
	resp, err := r.session.transport.follow(req)
	if err == nil && resp == nil {
		err = errNoResponse
	}
	if err == nil && resp.Body == nil {
		resp.Body = http.NoBody
	}
	return resp, err
}

// dismiss ends a session on the server that nobody will use.
func (r *renewal) dismiss(ctx context.Context, id string) {
	req := r.hand.Clone(ctx)
	req.Method, req.Body, req.GetBody, req.ContentLength = http.MethodDelete, nil, nil, 0
	req.Header.Del("Content-Type")
	req.Header.Del(headerLastEventID)
	req.Header.Set(headerSessionID, id)
	if resp, err := r.session.transport.follow(req); err == nil && resp != nil && resp.Body != nil {
		drain(resp.Body)
	}
}
