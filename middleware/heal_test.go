package middleware_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// forgetful are servers whose sessions are lost in one call and found in the next.
func forgetful() map[string]middlewaretest.Options {
	return map[string]middlewaretest.Options{
		"json":             {},
		"stream":           {Stream: true, EventIDs: true},
		"standalone":       {StandaloneSSE: true},
		"json over HTTP/2": {HTTP2: true},
	}
}

// TestHealed: a server that has forgotten its sessions serves the same session of the
// SDK on; harmless calls do not even notice, and an unsafe one is not repeated.
func TestHealed(t *testing.T) {
	for name, so := range forgetful() {
		for _, tool := range []string{"read_weather", "set_label", "pay_keyed", "pay"} {
			t.Run(name+"/"+tool, func(t *testing.T) {
				t.Parallel()
				so := so
				so.Version, so.Sessions = middlewaretest.Version20251125, true
				r := newRig(t, so)
				id := r.session.ID()
				r.server.ForgetSessions()
				_, rec, err := r.call(tool, time.Minute)
				posts := 2
				if tool == "pay" {
					posts = 1
					tell(t, rec, err, observe.SessionLost, observe.Refused, true)
					if errors.Is(err, mcp.ErrSessionMissing) || errors.Is(err, mcp.ErrConnectionClosed) {
						t.Errorf("%v asks a framework to call again", err)
					}
					if e := new(observe.Error); !errors.As(err, &e) || !e.Healed || e.RepeatSafe || !strings.Contains(err.Error(), "renewed") {
						t.Errorf("error %+v", e)
					}
				} else {
					tell(t, rec, err, observe.ToolSuccess, observe.Answered, true)
				}
				if n := r.server.Posts(tool); n != posts || r.server.Effects(tool) != posts-1 || len(rec.Attempts) != posts {
					t.Errorf("%d POSTs, %d effects, record %+v", n, r.server.Effects(tool), rec)
				}
				if c := r.server.Counts(); c.Initializes != 2 || c.Pings != 1 {
					t.Errorf("counts %+v", c)
				}
				if keys := keysOf(r.server, tool); len(keys) != 1 {
					t.Errorf("keys %v", keys)
				}
				if r.session.ID() != id {
					t.Error("the SDK has seen another id")
				}
				if _, rec, err := r.call("send_mail", time.Minute); err != nil || rec.Healed || len(rec.Attempts) != 1 {
					t.Errorf("the next call: %v, %+v", err, rec)
				}
			})
		}
	}
}

func keysOf(s *middlewaretest.Server, tool string) map[string]bool {
	keys := map[string]bool{}
	for _, e := range s.Entries() {
		if e.Tool == tool {
			keys[e.Key] = true
		}
	}
	return keys
}

// TestUnsafeIsRepeatedWhereThePolicySaysSo: the operator believes the 404.
func TestUnsafeIsRepeatedWhereThePolicySaysSo(t *testing.T) {
	inBubble(t, middlewaretest.Options{}, middleware.Options{}, func(r *healRig) {
		r.server.ForgetSessions()
		_, rec, err := r.call("pay", time.Minute)
		tell(r.t, rec, err, observe.ToolSuccess, observe.Answered, true)
		if r.server.Effects("pay") != 1 || r.server.Posts("pay") != 2 {
			r.t.Errorf("%d effects", r.server.Effects("pay"))
		}
	}, policy.Rule{Tool: "pay", Settings: policy.Settings{Retry: policy.Retry{Healed: new(true)}}})
}

// TestOneHandshake: fifty callers at once, one handshake and one check.
func TestOneHandshake(t *testing.T) {
	inBubble(t, middlewaretest.Options{StandaloneSSE: true}, middleware.Options{}, func(r *healRig) {
		r.server.ScriptMethod("initialize", middlewaretest.Fault{Name: "late", Delay: 300 * time.Millisecond})
		r.server.ForgetSessions()
		var callers sync.WaitGroup
		var failed atomic.Int64
		for range 50 {
			callers.Go(func() {
				if _, err := r.session.CallTool(r.t.Context(), &mcp.CallToolParams{Name: "read_weather"}); err != nil {
					failed.Add(1)
				}
			})
		}
		callers.Wait()
		if c := r.server.Counts(); failed.Load() != 0 || c.Initializes != 2 || c.Pings != 1 || r.server.Effects("read_weather") != 50 {
			r.t.Errorf("%d failed, %d effects, counts %+v", failed.Load(), r.server.Effects("read_weather"), c)
		}
	})
}

// TestHealingCostsNoBudget: one lost session must not leave its callers without the
// repeats that they need for something else.
func TestHealingCostsNoBudget(t *testing.T) {
	inBubble(t, middlewaretest.Options{}, middleware.Options{}, func(r *healRig) {
		f, _ := middlewaretest.FaultNamed("session-forgotten")
		r.server.Script("read_weather", f, middlewaretest.Status(502))
		_, rec, err := r.call("read_weather", time.Minute)
		tell(r.t, rec, err, observe.ToolSuccess, observe.Answered, true)
		if len(rec.Attempts) != 3 {
			r.t.Errorf("record %+v", rec)
		}
	}, policy.Rule{Settings: policy.Settings{Retry: policy.Retry{Budget: 1}}})
}

// TestNothingIsSentMeanwhile: a call made while the session is being renewed goes out
// once, under the new id, and so does an unsafe one.
func TestNothingIsSentMeanwhile(t *testing.T) {
	inBubble(t, middlewaretest.Options{}, middleware.Options{}, func(r *healRig) {
		r.server.ScriptMethod("initialize", middlewaretest.Fault{Name: "late", Delay: time.Second})
		r.server.ForgetSessions()
		first := make(chan error, 1)
		go func() {
			_, err := r.session.CallTool(r.t.Context(), &mcp.CallToolParams{Name: "read_weather"})
			first <- err
		}()
		synctest.Wait()
		_, rec, err := r.call("pay", time.Minute)
		tell(r.t, rec, err, observe.ToolSuccess, observe.Answered, true)
		if r.server.Posts("pay") != 1 || <-first != nil {
			r.t.Errorf("%d POSTs", r.server.Posts("pay"))
		}
	})
}

// TestLateNews: an answer that speaks of a session which others have renewed meanwhile
// is no reason to renew the new one.
func TestLateNews(t *testing.T) {
	inBubble(t, middlewaretest.Options{}, middleware.Options{}, func(r *healRig) {
		r.server.Script("read_weather", middlewaretest.Status(404).Delayed(5*time.Second))
		late := make(chan error, 1)
		go func() {
			_, err := r.session.CallTool(r.t.Context(), &mcp.CallToolParams{Name: "read_weather"})
			late <- err
		}()
		synctest.Wait()
		r.server.ForgetSessions()
		_, rec, err := r.call("set_label", time.Minute)
		tell(r.t, rec, err, observe.ToolSuccess, observe.Answered, true)
		if err := <-late; err != nil {
			r.t.Error(err)
		}
		if c := r.server.Counts(); c.Pings != 1 || c.Initializes != 2 {
			r.t.Errorf("counts %+v", c)
		}
	})
}

// TestShapesOfALostSession: the same loss, announced in the ways of the field.
func TestShapesOfALostSession(t *testing.T) {
	shape := func(name string, f middlewaretest.Fault) middlewaretest.Fault { f.Name = name; return f }
	nullID := middlewaretest.StatusError(404, -32600, "")
	nullID.Body = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no session"}}`
	for _, f := range []middlewaretest.Fault{
		shape("404 text", middlewaretest.Status(404)),
		shape("404 null id", nullID),
		shape("404 -32001", middlewaretest.StatusError(404, -32001, "Session not found")),
		shape("404 -32600", middlewaretest.StatusError(404, -32600, "Session not found")),
	} {
		t.Run("everywhere "+f.Name, func(t *testing.T) {
			inBubble(t, middlewaretest.Options{UnknownSession: &f}, middleware.Options{}, func(r *healRig) {
				r.server.ForgetSessions()
				_, rec, err := r.call("read_weather", time.Minute)
				tell(r.t, rec, err, observe.ToolSuccess, observe.Answered, true)
				r.handshakes(2)
			})
		})
	}
	// Here the server, or what stands before it, has other words for a call than for
	// the ping that checks them.
	event := middlewaretest.JSONRPCError(-32600, "Session not found").AsEvent()
	for _, row := range []struct {
		fault    middlewaretest.Fault
		delivery observe.Delivery
	}{
		{shape("503", middlewaretest.Status(503)), observe.Unknown},
		{shape("503 executed", middlewaretest.Status(503).Executed()), observe.Unknown},
		{shape("event", event), observe.Refused},
		{shape("200 -32600", middlewaretest.JSONRPCError(-32600, "no session")), observe.Refused},
		{shape("200 -32000", middlewaretest.JSONRPCError(-32000, "no session")), observe.Unknown},
		{shape("400 -32000", middlewaretest.StatusError(400, -32000, "no session")), observe.Refused},
		{shape("200 null id", middlewaretest.Body("", "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32099,"message":"no session"}}`)), observe.Unknown},
	} {
		row.fault.ForgetSessions = true
		t.Run("in a call "+row.fault.Name, func(t *testing.T) {
			inBubble(t, middlewaretest.Options{}, middleware.Options{}, func(r *healRig) {
				r.server.Script("read_weather", row.fault)
				_, rec, err := r.call("read_weather", time.Minute)
				tell(r.t, rec, err, observe.ToolSuccess, observe.Answered, true)
				if rec.Attempts[0].Outcome != observe.SessionLost || rec.Attempts[0].Delivery != row.delivery {
					r.t.Errorf("first attempt %+v", rec.Attempts[0])
				}
				time.Sleep(time.Minute) // so that it may be healed again
				r.server.Script("pay", row.fault)
				_, rec, err = r.call("pay", time.Minute)
				tell(r.t, rec, err, observe.SessionLost, row.delivery, true)
				if r.server.Posts("pay") != 1 {
					r.t.Errorf("%d POSTs of an unsafe call", r.server.Posts("pay"))
				}
				r.handshakes(3)
			})
		})
	}
}

// TestShapeOfTheHost: a server that says it in its own way, which only the host knows.
func TestShapeOfTheHost(t *testing.T) {
	own := middlewaretest.StatusError(400, -32000, "Bad Request: No valid session ID provided")
	for _, told := range []bool{false, true} {
		var opts middleware.Options
		if told {
			opts.SessionLost = func(a *middleware.SessionAnswer) bool {
				return a.Server == healEndpoint && a.Status == 400 && a.RPC != nil && strings.Contains(a.RPC.Message, "valid session")
			}
		}
		inBubble(t, middlewaretest.Options{UnknownSession: &own}, opts, func(r *healRig) {
			r.server.ForgetSessions()
			_, rec, err := r.call("read_weather", time.Minute)
			if !told {
				tell(r.t, rec, err, observe.HTTPError, observe.Refused, false)
				r.handshakes(1)
				return
			}
			tell(r.t, rec, err, observe.ToolSuccess, observe.Answered, true)
			r.handshakes(2)
		})
	}
}

// TestNotALoss: what looks like a lost session and is none opens no new one.
func TestNotALoss(t *testing.T) {
	for name, row := range map[string]struct {
		fault   middlewaretest.Fault
		outcome observe.Outcome
		pings   int
	}{
		"-32601 echoed": {middlewaretest.StatusError(404, -32601, "no method"), observe.HTTPError, 0},
		"-32602 echoed": {middlewaretest.StatusError(404, -32602, "no tool"), observe.HTTPError, 0},
		"404 text":      {middlewaretest.Status(404), observe.HTTPError, 1},
		"503":           {middlewaretest.Status(503), observe.HTTPError, 1},
		"-32600":        {middlewaretest.JSONRPCError(-32600, "no"), observe.JSONRPCError, 1},
		"isError":       {middlewaretest.ToolError("session not found"), observe.ToolError, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, middlewaretest.Options{}, middleware.Options{}, func(r *healRig) {
				r.server.Script("pay", row.fault)
				_, rec, err := r.call("pay", time.Minute)
				if rec.Outcome != row.outcome || rec.Healed || len(rec.Attempts) != 1 {
					r.t.Errorf("err %v, record %+v", err, rec)
				}
				if c := r.server.Counts(); c.Pings != row.pings || c.Initializes != 1 {
					r.t.Errorf("counts %+v", c)
				}
				r.stillServes(middlewaretest.Fault{})
			})
		})
	}
}

// TestChecksAreFew: a server that is overloaded is not pinged for each of its 503.
func TestChecksAreFew(t *testing.T) {
	inBubble(t, middlewaretest.Options{}, middleware.Options{}, func(r *healRig) {
		r.server.Always("send_mail", middlewaretest.Status(503))
		for range 20 {
			_, _, _ = r.callIn(r.t.Context(), "send_mail", map[string]any{"n": r.server.Posts("send_mail")})
		}
		if n := r.server.Counts().Pings; n != 1 {
			r.t.Errorf("%d pings", n)
		}
	}, policy.Rule{Settings: policy.Settings{Breaker: policy.Breaker{Failures: -1}}})
}

// TestNeverALoop: a server that loses every session at once gets no more than one
// after ever longer waits, and each call at most one repeat.
func TestNeverALoop(t *testing.T) {
	inBubble(t, middlewaretest.Options{}, middleware.Options{}, func(r *healRig) {
		f, _ := middlewaretest.FaultNamed("session-forgotten")
		r.server.Always("read_weather", f)
		_, rec, err := r.call("read_weather", time.Minute)
		tell(r.t, rec, err, observe.SessionLost, observe.Unknown, true)
		if n := r.server.Posts("read_weather"); n != 2 {
			r.t.Errorf("%d POSTs", n)
		}
		r.handshakes(2)
		begun := time.Now()
		calls := 0
		for ; time.Since(begun) < 2*time.Minute; calls++ {
			_, _, _ = r.call("read_weather", time.Minute)
			time.Sleep(100 * time.Millisecond)
		}
		if c := r.server.Counts(); c.Initializes > 12 || r.server.Posts("read_weather") > calls+c.Initializes+1 {
			r.t.Errorf("%d calls, %d POSTs, counts %+v", calls, r.server.Posts("read_weather"), c)
		}
		r.server.ClearScripts()
		time.Sleep(time.Minute)
		r.stillServes(middlewaretest.Fault{})
	})
}

// TestLostAgainSoon: a session that served and is lost again is renewed again, though
// not at once.
func TestLostAgainSoon(t *testing.T) {
	inBubble(t, middlewaretest.Options{}, middleware.Options{}, func(r *healRig) {
		begun := time.Now()
		for n := range 20 {
			r.server.ForgetSessions()
			_, rec, err := r.callIn(r.t.Context(), "read_weather", map[string]any{"n": n})
			tell(r.t, rec, err, observe.ToolSuccess, observe.Answered, true)
		}
		r.handshakes(21)
		if d := time.Since(begun); d < 19*time.Second || d > 20*time.Second {
			r.t.Errorf("20 renewals took %v", d)
		}
	})
}

// TestHealingOff: where the policy does not want it, nothing is renewed, and from the
// loss on nothing is sent.
func TestHealingOff(t *testing.T) {
	for _, tool := range []string{"read_weather", "pay"} {
		inBubble(t, middlewaretest.Options{StandaloneSSE: true}, middleware.Options{}, func(r *healRig) {
			r.server.ForgetSessions()
			_, rec, err := r.call(tool, time.Minute)
			tell(r.t, rec, err, observe.SessionLost, observe.Refused, false)
			if errors.Is(err, mcp.ErrSessionMissing) != (tool == "read_weather") {
				r.t.Errorf("%s: %v", tool, err)
			}
			r.refused()
			time.Sleep(time.Hour)
			r.refused()
			r.handshakes(1)
		}, policy.Rule{Settings: policy.Settings{Session: policy.Session{Heal: new(false)}}})
	}
}

// refused checks that calls on the lost session are refused before sending, so that
// frameworks reconnect, whatever the tool.
func (r *healRig) refused() {
	r.t.Helper()
	posts := r.server.Counts().Posts
	for _, tool := range []string{"read_weather", "send_mail", "pay_keyed"} {
		_, rec, err := r.call(tool, time.Minute)
		tell(r.t, rec, err, observe.SessionLost, observe.NotSent, false)
		if !errors.Is(err, mcp.ErrSessionMissing) {
			r.t.Errorf("%s: %v", tool, err)
		}
	}
	if n := r.server.Counts().Posts - posts; n != 0 {
		r.t.Errorf("%d POSTs on a lost session", n)
	}
}

// TestHealingFails: a handshake that is refused leaves the session lost until the
// server is well again; the first call after that goes out once.
func TestHealingFails(t *testing.T) {
	for name, f := range map[string]middlewaretest.Fault{
		"500": middlewaretest.Status(500), "reset": middlewaretest.Close(), "no JSON": middlewaretest.Body("", "text/html", "<html>"),
		"no result": middlewaretest.JSONRPCError(-32603, "no"),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, middlewaretest.Options{StandaloneSSE: true}, middleware.Options{}, func(r *healRig) {
				r.server.AlwaysMethod("initialize", f)
				r.server.ForgetSessions()
				_, rec, err := r.call("pay", time.Minute)
				tell(r.t, rec, err, observe.SessionLost, observe.Refused, false)
				if errors.Is(err, mcp.ErrSessionMissing) {
					r.t.Error(err)
				}
				r.refused()
				r.server.AlwaysMethod("initialize", middlewaretest.Fault{})
				time.Sleep(time.Minute)
				_, rec, err = r.call("send_mail", time.Minute)
				if err != nil || len(rec.Attempts) != 1 || r.server.Effects("send_mail") != 1 {
					r.t.Errorf("afterwards: %v, %+v", err, rec)
				}
			})
		})
	}
}

// TestServerComesBack: a handshake that fails while the server restarts is tried again
// within the time for healing, and whoever waits does not notice.
func TestServerComesBack(t *testing.T) {
	for name, f := range map[string]middlewaretest.Fault{"503": middlewaretest.Status(503), "429": middlewaretest.Status(429), "close": middlewaretest.Close()} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, middlewaretest.Options{}, middleware.Options{}, func(r *healRig) {
				r.server.AlwaysMethod("initialize", f)
				time.AfterFunc(5*time.Second, func() { r.server.AlwaysMethod("initialize", middlewaretest.Fault{}) })
				r.server.ForgetSessions()
				_, rec, err := r.call("read_weather", time.Minute)
				tell(r.t, rec, err, observe.ToolSuccess, observe.Answered, true)
				if n := r.server.Counts().Initializes; n > 12 {
					r.t.Errorf("%d handshakes", n)
				}
			})
		})
	}
}

// TestHangingHandshake: callers wait no longer than they want to, and nobody longer
// than the policy's limit.
func TestHangingHandshake(t *testing.T) {
	inBubble(t, middlewaretest.Options{}, middleware.Options{}, func(r *healRig) {
		r.server.AlwaysMethod("initialize", middlewaretest.Hang())
		r.server.ForgetSessions()
		begun := time.Now()
		patient := make(chan time.Duration, 1)
		go func() {
			_, _ = r.session.CallTool(r.t.Context(), &mcp.CallToolParams{Name: "send_mail"})
			patient <- time.Since(begun)
		}()
		synctest.Wait()
		_, rec, err := r.call("pay", 200*time.Millisecond)
		tell(r.t, rec, err, observe.Timeout, observe.NotSent, false)
		if d := time.Since(begun); d > 300*time.Millisecond {
			r.t.Errorf("the caller came back after %v", d)
		}
		ctx, cancel := context.WithCancel(r.t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		_, rec, err = r.callIn(ctx, "read_weather", nil)
		tell(r.t, rec, err, observe.Canceled, observe.NotSent, false)
		if d := <-patient; d < 10*time.Second || d > 11*time.Second {
			r.t.Errorf("healing took %v", d)
		}
		r.refused()
	})
}

// TestTheOneWhoMetIt: the caller that met the 404 keeps to its deadline too.
func TestTheOneWhoMetIt(t *testing.T) {
	inBubble(t, middlewaretest.Options{}, middleware.Options{}, func(r *healRig) {
		r.server.AlwaysMethod("initialize", middlewaretest.Hang())
		r.server.ForgetSessions()
		begun := time.Now()
		_, rec, err := r.call("pay", 200*time.Millisecond)
		if rec.Delivery != observe.Refused || rec.Outcome != observe.SessionLost || !errors.Is(err, context.DeadlineExceeded) {
			r.t.Errorf("err %v, record %+v", err, rec)
		}
		if d := time.Since(begun); d > 300*time.Millisecond {
			r.t.Errorf("came back after %v", d)
		}
	})
}

// TestAnotherServer: what answers the handshake is not what it was; nothing is renewed,
// then or later, and the session that was opened for nothing is closed.
func TestAnotherServer(t *testing.T) {
	for name, h := range map[string]middlewaretest.Handshake{
		"name":         {Name: "impostor"},
		"protocol":     {ProtocolVersion: "2025-06-18"},
		"capabilities": {Capabilities: map[string]any{"tools": map[string]any{}, "logging": map[string]any{}}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, middlewaretest.Options{}, middleware.Options{}, func(r *healRig) {
				r.server.SetHandshake(h)
				r.server.ForgetSessions()
				_, rec, err := r.call("read_weather", time.Minute)
				tell(r.t, rec, err, observe.SessionLost, observe.Refused, false)
				r.server.SetHandshake(middlewaretest.Handshake{})
				time.Sleep(time.Hour)
				r.refused()
				r.handshakes(2)
				if n := r.server.Sessions(); n != 0 {
					r.t.Errorf("%d sessions are left", n)
				}
			})
		})
	}
	t.Run("new software", func(t *testing.T) {
		inBubble(t, middlewaretest.Options{}, middleware.Options{}, func(r *healRig) {
			r.server.SetHandshake(middlewaretest.Handshake{Version: "2"})
			r.server.ForgetSessions()
			_, rec, err := r.call("read_weather", time.Minute)
			tell(r.t, rec, err, observe.ToolSuccess, observe.Answered, true)
		})
	})
}

// TestHugeHandshake: a handshake that is too large to be kept is no reason to fail, but
// its session cannot be compared with a new one.
func TestHugeHandshake(t *testing.T) {
	server := middlewaretest.NewServer(&middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true})
	t.Cleanup(server.Close)
	huge := map[string]any{"tools": map[string]any{}, "experimental": map[string]any{"x": map[string]any{"y": strings.Repeat("y", 2<<20)}}}
	server.SetHandshake(middlewaretest.Handshake{Capabilities: huge})
	r := &rig{t: t, server: server}
	r.session = r.connect(t, middleware.New(nil))
	if _, err := r.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"}); err != nil {
		t.Fatal(err)
	}
	server.ForgetSessions()
	_, err := r.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "send_mail"})
	if e := new(observe.Error); !errors.As(err, &e) || e.Outcome != observe.SessionLost || e.Healed {
		t.Errorf("error %v", err)
	}
	if n := server.Counts().Initializes; n != 1 {
		t.Errorf("%d handshakes", n)
	}
}

// TestCredentialsOfTheRequestAtHand: the handshake goes out with the credentials of
// the request that met the loss, not with those of the first one.
func TestCredentialsOfTheRequestAtHand(t *testing.T) {
	inBubble(t, middlewaretest.Options{}, middleware.Options{}, func(r *healRig) {
		first := context.WithValue(r.t.Context(), tokenKey{}, "Bearer first")
		second := context.WithValue(r.t.Context(), tokenKey{}, "Bearer second")
		if _, _, err := r.callIn(first, "read_weather", nil); err != nil {
			r.t.Fatal(err)
		}
		r.server.ForgetSessions()
		if _, _, err := r.callIn(second, "read_weather", nil); err != nil {
			r.t.Fatal(err)
		}
		for _, method := range []string{"initialize", "ping", "notifications/initialized"} {
			all := r.sent(method)
			if got := all[len(all)-1].Header.Get("Authorization"); got != "Bearer second" {
				r.t.Errorf("%s went out with %q", method, got)
			}
		}
	})
}

// TestAuthorizationIsTheSDKs: a handshake that is answered 401 decides nothing: the
// next request hears the 401 itself.
func TestAuthorizationIsTheSDKs(t *testing.T) {
	inBubble(t, middlewaretest.Options{}, middleware.Options{}, func(r *healRig) {
		r.server.AlwaysMethod("initialize", middlewaretest.Status(400))
		r.server.ForgetSessions()
		_, rec, err := r.call("pay", time.Minute)
		tell(r.t, rec, err, observe.SessionLost, observe.Refused, false)
		r.refused()
		r.server.AlwaysMethod("initialize", middlewaretest.Status(401))
		time.Sleep(time.Minute)
		_, rec, err = r.callIn(r.t.Context(), "send_mail", map[string]any{"n": 2})
		tell(r.t, rec, err, observe.SessionLost, observe.Refused, false)
		r.handshakes(4)
		r.server.AlwaysMethod("initialize", middlewaretest.Fault{})
		_, rec, err = r.call("read_weather", time.Minute)
		tell(r.t, rec, err, observe.ToolSuccess, observe.Answered, true)
	})
}

// TestEverythingGoesUnderTheNewID: cancellations, answers and the end of the session
// too.
func TestEverythingGoesUnderTheNewID(t *testing.T) {
	inBubble(t, middlewaretest.Options{}, middleware.Options{}, func(r *healRig) {
		old := r.session.ID()
		r.server.ForgetSessions()
		if _, _, err := r.call("read_weather", time.Minute); err != nil {
			r.t.Fatal(err)
		}
		calls := r.sent("tools/call")
		now := calls[len(calls)-1].Session
		r.server.Script("set_label", middlewaretest.Fault{Name: "says its id", Header: http.Header{"Mcp-Session-Id": {now}}})
		if _, rec, err := r.call("set_label", time.Minute); err != nil || len(rec.Deviations) != 0 {
			r.t.Errorf("an answer that carries the new id: %v, %v", err, rec.Deviations)
		}
		r.server.Script("pay", middlewaretest.Hang())
		_, _, _ = r.call("pay", time.Second)
		synctest.Wait()
		_ = r.session.Close()
		for _, method := range []string{"notifications/cancelled", "DELETE"} {
			all := r.sent(method)
			if len(all) != 1 || all[0].Session == "" || all[0].Header.Get("Mcp-Session-Id") == old {
				r.t.Errorf("%s: %+v", method, all)
			}
		}
		if r.session.ID() != old || r.server.Sessions() != 0 {
			r.t.Errorf("the SDK's id is %s, %d sessions", r.session.ID(), r.server.Sessions())
		}
	})
}

// TestOnHealed: the host restores the server's state once, before anything else goes
// out, and with calls of its own.
func TestOnHealed(t *testing.T) {
	var told []middleware.Renewal
	var restoring *mcp.ClientSession
	opts := middleware.Options{OnHealed: func(ctx context.Context, r middleware.Renewal) {
		told = append(told, r)
		time.Sleep(3 * time.Second) // longer than a session is left as it is
		if _, err := restoring.CallTool(ctx, &mcp.CallToolParams{Name: "set_label"}); err != nil {
			panic(err)
		}
	}}
	inBubble(t, middlewaretest.Options{StandaloneSSE: true}, opts, func(r *healRig) {
		restoring = r.session
		r.server.ForgetSessions()
		var callers sync.WaitGroup
		for range 10 {
			callers.Go(func() { _, _ = r.session.CallTool(r.t.Context(), &mcp.CallToolParams{Name: "read_weather"}) })
		}
		callers.Wait()
		if len(told) != 1 || told[0].Session != r.session || told[0].Server != healEndpoint {
			r.t.Errorf("told %+v", told)
		}
		var order []string
		for _, e := range r.server.Entries() {
			if e.Tool != "" && e.Session != "" && e.Executed {
				order = append(order, e.Tool)
			}
		}
		if len(order) != 11 || slices.Index(order, "set_label") != 0 {
			r.t.Errorf("order %v", order)
		}
		r.handshakes(2)
	})
}

// TestOnHealedThatFails: a hook that meets another loss, or does not come back, holds
// nobody for longer than the limit.
func TestOnHealedThatFails(t *testing.T) {
	var restoring *mcp.ClientSession
	opts := middleware.Options{OnHealed: func(ctx context.Context, _ middleware.Renewal) {
		time.Sleep(3 * time.Second)
		begun := time.Now()
		if _, err := restoring.CallTool(ctx, &mcp.CallToolParams{Name: "set_label"}); err == nil || time.Since(begun) > time.Second {
			t.Errorf("the hook's own call came back after %v with %v", time.Since(begun), err)
		}
		<-ctx.Done()
	}}
	inBubble(t, middlewaretest.Options{}, opts, func(r *healRig) {
		restoring = r.session
		r.server.Script("set_label", middlewaretest.Status(404))
		r.server.ForgetSessions()
		begun := time.Now()
		_, rec, err := r.call("read_weather", time.Minute)
		if d := time.Since(begun); d < 5*time.Second || d > 6*time.Second {
			r.t.Errorf("held for %v", d)
		}
		tell(r.t, rec, err, observe.ToolSuccess, observe.Answered, true)
	}, policy.Rule{Settings: policy.Settings{Session: policy.Session{Timeout: 5 * time.Second}}})
}

// sdkHost is the SDK's own server, which can be replaced; each begins its session ids
// anew.
type sdkHost struct {
	store   func() mcp.EventStore
	handler atomic.Pointer[mcp.StreamableHTTPHandler]
	server  *mcp.Server
	opened  atomic.Int64 // sessions of the latest server
	effects atomic.Int64
}

func (h *sdkHost) replace() {
	h.close()
	h.opened.Store(0)
	server := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, &mcp.ServerOptions{
		GetSessionID: func() string { return strconv.FormatInt(h.opened.Add(1), 10) },
	})
	mcp.AddTool(server, &mcp.Tool{Name: "read_balance"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		h.effects.Add(1)
		return &mcp.CallToolResult{}, nil, nil
	})
	h.server = server
	opts := &mcp.StreamableHTTPOptions{}
	if h.store != nil {
		opts.EventStore = h.store()
	}
	h.handler.Store(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, opts))
}

// close ends the sessions of the server that is being replaced.
func (h *sdkHost) close() {
	if h.server == nil {
		return
	}
	for session := range h.server.Sessions() {
		_ = session.Close()
	}
}

func (h *sdkHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if isNewer(r) {
		http.Error(w, "not here", http.StatusBadRequest) // an older server
		return
	}
	h.handler.Load().ServeHTTP(w, r)
}

func isNewer(r *http.Request) bool {
	return r.Header.Get("Mcp-Protocol-Version") >= middlewaretest.Version20260728
}

// TestReplacedSDKServer: the SDK's own server, replaced under two sessions, with and
// without an event store. Its ids are such that each has what the other one has had.
func TestReplacedSDKServer(t *testing.T) {
	for name, store := range map[string]func() mcp.EventStore{"plain": nil, "event store": func() mcp.EventStore { return mcp.NewMemoryEventStore(nil) }} {
		t.Run(name, func(t *testing.T) {
			host := &sdkHost{store: store}
			host.replace()
			web := httptest.NewServer(host)
			defer web.Close()
			defer host.close()
			stack := middleware.New(&middleware.Options{Policy: &policy.Policy{Rules: classes()}})
			hc := stack.HTTPClient(nil)
			defer hc.CloseIdleConnections()
			connect := func() *mcp.ClientSession {
				client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
				client.AddSendingMiddleware(stack.Middleware()...)
				cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: web.URL, HTTPClient: hc}, nil)
				if err != nil {
					t.Fatal(err)
				}
				return cs
			}
			call := func(cs *mcp.ClientSession) {
				t.Helper()
				if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_balance"}); err != nil {
					t.Error(err)
				}
			}
			one := connect()
			defer one.Close()
			call(one)
			host.replace()
			two := connect()
			defer two.Close()
			call(two)
			host.replace()
			call(two)
			call(one)
			if one.ID() == two.ID() {
				t.Errorf("both are %s", one.ID())
			}
			if n := host.effects.Load(); n != 4 {
				t.Errorf("%d effects", n)
			}
		})
	}
}

// TestTransportAloneHeals: without the client middlewares the session is renewed too;
// the call that met the loss is not repeated by anybody.
func TestTransportAloneHeals(t *testing.T) {
	server := middlewaretest.NewServer(&middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true, Stream: true})
	defer server.Close()
	hc := &http.Client{Transport: middleware.NewTransport(nil, nil)}
	defer hc.CloseIdleConnections()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL(), HTTPClient: hc}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	lost := middlewaretest.JSONRPCError(-32600, "no session").AsEvent()
	lost.ForgetSessions = true
	for _, f := range []middlewaretest.Fault{lost, {}} {
		server.Script("pay", f)
		if f.Name == "" {
			time.Sleep(1100 * time.Millisecond) // it was renewed just now
			server.ForgetSessions()
		}
		_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"})
		if e, ok := middleware.ErrorFrom(err); !ok || e.Outcome != observe.SessionLost || !e.Healed || e.RepeatSafe {
			t.Errorf("error %v", err)
		}
		if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "send_mail"}); err != nil {
			t.Error(err)
		}
	}
	if server.Effects("pay") != 0 || server.Effects("send_mail") != 2 || server.Counts().Initializes != 3 {
		t.Errorf("%d, %d effects, counts %+v", server.Effects("pay"), server.Effects("send_mail"), server.Counts())
	}
}

// TestAttemptBoundsHealing: where a tool has a limit for an attempt, that also bounds the
// wait for a renewal, of the call that met the loss and of those that wait to be sent.
func TestAttemptBoundsHealing(t *testing.T) {
	inBubble(t, middlewaretest.Options{}, middleware.Options{}, func(r *healRig) {
		r.restart()
		r.server.AlwaysMethod("initialize", middlewaretest.Hang())
		posts := r.server.Posts("pay")
		for range 3 {
			begun := time.Now()
			_, rec, err := r.call("pay", time.Hour)
			if took := time.Since(begun); err == nil || took != 2*time.Second || rec.Outcome.Usable() {
				r.t.Errorf("took %v, err %v, record %+v", took, err, rec)
			}
		}
		if n := r.server.Posts("pay") - posts; n != 1 {
			r.t.Errorf("%d POSTs", n)
		}
		_, rec, _ := r.call("pay", time.Hour)
		if rec.Outcome != observe.Timeout || rec.Delivery != observe.NotSent {
			r.t.Errorf("record %+v", rec)
		}
		r.server.AlwaysMethod("initialize", middlewaretest.Fault{})
	}, never, policy.Rule{Settings: policy.Settings{Limits: policy.Limits{Attempt: 2 * time.Second}, Session: policy.Session{Timeout: -1}}})
}
