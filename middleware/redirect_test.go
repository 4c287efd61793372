package middleware_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// moved is a server that can be told to redirect its endpoint to another path.
type moved struct {
	*rig
	web    *httptest.Server
	moving atomic.Bool
	loop   atomic.Bool
	paths  atomic.Int32 // requests to the other path
}

func newMoved(t *testing.T, so middlewaretest.Options, moving bool) *moved {
	t.Helper()
	m := &moved{rig: &rig{t: t, server: middlewaretest.NewUnstarted(&so)}}
	t.Cleanup(m.server.Close)
	m.moving.Store(moving)
	serve := m.server.Handler()
	m.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case req.URL.Path == "/moved/" && !m.loop.Load():
			m.paths.Add(1)
		case m.moving.Load(), m.loop.Load():
			w.Header().Set("Location", "/moved/")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return
		}
		serve.ServeHTTP(w, req)
	}))
	t.Cleanup(m.web.Close)
	m.stack = middleware.New(&middleware.Options{
		Policy: &policy.Policy{Rules: append([]policy.Rule{
			{Server: m.web.URL + "/mcp", Tool: "pay", Settings: policy.Settings{Safety: policy.ReadOnly}},
		}, classes()...)},
		OnRecord: func(_ context.Context, rec *observe.Record) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.records = append(m.records, rec)
		},
	})
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	client.AddSendingMiddleware(m.stack.Middleware()...)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: m.web.URL + "/mcp", HTTPClient: m.stack.HTTPClient(nil)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.session = cs
	t.Cleanup(func() { _ = cs.Close() })
	return m
}

// TestRedirectedEndpoint: a server is known by the endpoint that the host configured,
// and its session is found and renewed, whenever it begins to redirect.
func TestRedirectedEndpoint(t *testing.T) {
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		so.StandaloneSSE = so.Sessions
		for _, fromTheStart := range []bool{true, false} {
			m := newMoved(t, so, fromTheStart)
			m.moving.Store(true)
			for n := 1; n <= 2; n++ {
				_, rec, err := m.call("pay", 20*time.Second)
				if err != nil || rec.Server != m.web.URL+"/mcp" || rec.Endpoint != rec.Server || rec.Safety != string(policy.ReadOnly) ||
					len(rec.Attempts) != 1 || rec.PostCount != 2 || m.server.Effects("pay") != n {
					t.Errorf("from the start %t: error %v, %d effects, record %+v", fromTheStart, err, m.server.Effects("pay"), rec)
				}
			}
			if m.paths.Load() == 0 {
				t.Error("nothing was redirected")
			}
			if so.Sessions {
				m.losesItsSession(t)
			}
			if err := m.session.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func (m *moved) losesItsSession(t *testing.T) {
	t.Helper()
	for range 2 {
		time.Sleep(1100 * time.Millisecond) // one renewal a second
		handshakes := m.server.Counts().Initializes
		m.server.ForgetSessions()
		_, rec, err := m.call("pay", 20*time.Second)
		if err != nil || m.server.Counts().Initializes != handshakes+1 {
			t.Errorf("%d handshakes more, error %v, record %+v", m.server.Counts().Initializes-handshakes, err, rec)
		}
	}
	told := 0
	for _, e := range m.server.Entries() {
		if e.Method == "notifications/initialized" {
			told++
		}
	}
	if told != m.server.Counts().Initializes {
		t.Errorf("%d handshakes, %d of them completed", m.server.Counts().Initializes, told)
	}
}

// TestRedirectLoop: a redirect without end is named, with the place it leads to.
func TestRedirectLoop(t *testing.T) {
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		r := newMoved(t, so, false)
		r.loop.Store(true)
		_, rec, err := r.call("send_mail", 20*time.Second)
		r.loop.Store(false)
		e := failure(t, err)
		if e.Outcome != observe.Redirected || e.Location != r.web.URL || !strings.Contains(e.Reason, "again and again") || len(rec.Attempts) != 1 || r.server.Effects("send_mail") != 0 {
			t.Errorf("to %q: %v, record %+v", e.Location, err, rec)
		}
	})
}
