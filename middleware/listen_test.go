package middleware_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
)

// listens checks that the server can tell the client that its tools have changed.
func (r *healRig) listens() {
	r.t.Helper()
	r.mu.Lock()
	before := r.changed
	r.mu.Unlock()
	r.server.NotifyToolsChanged()
	time.Sleep(time.Second) // the SDK tells its handler a moment later
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed != before+1 {
		r.t.Errorf("%d notifications arrived, %d streams are open", r.changed-before, r.server.Subscribers())
	}
}

// TestIdleSession: a session that nobody uses while its server restarts is renewed by
// its own stream, so that the next call, an unsafe one too, just works.
func TestIdleSession(t *testing.T) {
	inBubble(t, middlewaretest.Options{StandaloneSSE: true}, middleware.Options{}, func(r *healRig) {
		r.listens()
		r.restart()
		time.Sleep(10 * time.Second)
		r.listens()
		_, rec, err := r.call("pay", time.Minute)
		tell(r.t, rec, err, observe.ToolSuccess, observe.Answered, false)
		if len(rec.Attempts) != 1 || r.server.Posts("pay") != 1 {
			r.t.Errorf("record %+v", rec)
		}
		gets := r.sent("GET")
		if last := gets[len(gets)-1]; last.Session == "" || last.Header.Get("Last-Event-Id") != "" {
			r.t.Errorf("the stream %+v", last)
		}
		r.handshakes(2)
	})
}

// TestStreamFollowsTheSession: a renewal that a call brought about moves the server's
// stream to the new session at once.
func TestStreamFollowsTheSession(t *testing.T) {
	inBubble(t, middlewaretest.Options{StandaloneSSE: true}, middleware.Options{}, func(r *healRig) {
		f, _ := middlewaretest.FaultNamed("session-forgotten")
		r.server.Script("read_weather", f)
		_, rec, err := r.call("read_weather", time.Minute)
		tell(r.t, rec, err, observe.ToolSuccess, observe.Answered, true)
		synctest.Wait()
		r.listens()
	})
}

// deaf is a network that does not tell when a stream has ended.
type deaf struct{ http.RoundTripper }

func (d deaf) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := d.RoundTripper.RoundTrip(req)
	if err == nil && req.Method == http.MethodGet && resp.StatusCode == http.StatusOK {
		resp.Body = deafBody{resp.Body, req.Context()}
	}
	return resp, err
}

type deafBody struct {
	io.ReadCloser
	ctx context.Context
}

func (b deafBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		<-b.ctx.Done()
	}
	return n, err
}

// TestDeadStreamIsCut: a stream of the old session that seems to live is let go.
func TestDeadStreamIsCut(t *testing.T) {
	inBubble(t, middlewaretest.Options{StandaloneSSE: true}, middleware.Options{}, func(r *healRig) {
		_ = r.session.Close()
		r.base = deaf{r.base}
		r.session = r.connect(r.stack)
		r.restart()
		_, rec, err := r.call("read_weather", time.Minute)
		tell(r.t, rec, err, observe.ToolSuccess, observe.Answered, true)
		synctest.Wait()
		r.listens()
	})
}

// TestManyRestarts: the session handed to the user at the start still works after
// dozens of restarts, some of them long, with and without sessions on the server.
func TestManyRestarts(t *testing.T) {
	for _, sessions := range []bool{true, false} {
		so := middlewaretest.Options{StandaloneSSE: true, Sessions: sessions}
		inBubbleWithout(t, so, middleware.Options{}, func(r *healRig) {
			for n := range 48 {
				r.server.EndStreams()
				r.restart()
				if n%8 == 0 {
					r.wires.setDown(true)
					time.Sleep(time.Hour)
					r.wires.setDown(false)
				}
				time.Sleep(time.Minute)
				if _, rec, err := r.callIn(r.t.Context(), "send_mail", map[string]any{"n": n}); err != nil {
					r.t.Fatalf("restart %d: %v, %+v", n, err, rec)
				}
			}
			r.listens()
			if n := r.server.Effects("send_mail"); n != 48 {
				r.t.Errorf("%d effects", n)
			}
		})
	}
}

// TestBareStreamIsCounted is the fact about the SDK that a listener is for: the sixth
// time that its stream ends without event ids ends its session (go-sdk v1.8.0).
func TestBareStreamIsCounted(t *testing.T) {
	inBubble(t, middlewaretest.Options{StandaloneSSE: true}, middleware.Options{}, func(r *healRig) {
		bare := r.connect(nil)
		defer bare.Close()
		for n := 1; n <= 6; n++ {
			if _, err := bare.CallTool(r.t.Context(), &mcp.CallToolParams{Name: "read_weather"}); err != nil {
				r.t.Fatalf("after %d ends: %v", n-1, err)
			}
			r.server.EndStreams()
			time.Sleep(time.Hour)
		}
		if _, err := bare.CallTool(r.t.Context(), &mcp.CallToolParams{Name: "read_weather"}); err == nil {
			r.t.Error("the SDK does not count any more: is the listener still needed?")
		}
		r.stillServes(middlewaretest.Fault{})
		r.listens()
	})
}

// TestRefusedStream: a stream that is refused, at first or later, ends no session, and
// is there again once the server gives it.
func TestRefusedStream(t *testing.T) {
	for _, f := range []middlewaretest.Fault{
		middlewaretest.Status(503), middlewaretest.Status(429), middlewaretest.Status(405), middlewaretest.Status(404),
		middlewaretest.Status(401), middlewaretest.Close(), middlewaretest.Body("page", "text/html", "<html>"),
		middlewaretest.Stream("empty", "", middlewaretest.EndComplete),
	} {
		t.Run(f.Name, func(t *testing.T) {
			inBubble(t, middlewaretest.Options{StandaloneSSE: true}, middleware.Options{}, func(r *healRig) {
				r.server.AlwaysMethod("GET", f)
				r.server.EndStreams()
				time.Sleep(time.Hour)
				r.stillServes(middlewaretest.Fault{})
				gets := r.server.Counts().Gets
				if gets > 200 {
					r.t.Errorf("%d GETs in an hour", gets)
				}

				other := r.connect(r.stack) // refused at first
				defer other.Close()
				if _, err := other.CallTool(r.t.Context(), &mcp.CallToolParams{Name: "read_weather"}); err != nil {
					r.t.Error(err)
				}

				r.server.AlwaysMethod("GET", middlewaretest.Fault{})
				time.Sleep(time.Minute)
				if n := r.server.Subscribers(); n == 0 {
					r.t.Error("the stream did not come back")
				}
				r.handshakes(2)
			})
		})
	}
}

// TestNoise: what is no message is not given to the SDK, which would end the session.
func TestNoise(t *testing.T) {
	inBubble(t, middlewaretest.Options{StandaloneSSE: true}, middleware.Options{}, func(r *healRig) {
		for _, noise := range []string{"no event at all\n\n", "data: {\n\n", "data: 7\n\n", ": keep alive\n\n", "data\n\n"} {
			r.server.Broadcast(noise)
		}
		r.listens()
		r.stillServes(middlewaretest.Fault{})
		if n := r.server.Counts().Gets; n != 1 {
			r.t.Errorf("%d GETs", n)
		}
	})
}

// TestResumedStream: events with ids are resumed within a session, and only there; a
// server that cannot do that gives the stream anew.
func TestResumedStream(t *testing.T) {
	inBubble(t, middlewaretest.Options{StandaloneSSE: true}, middleware.Options{}, func(r *healRig) {
		numbered := "id: 7\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"x\"}}\n\n"
		r.server.Broadcast(numbered)
		synctest.Wait()
		r.server.EndStreams()
		time.Sleep(time.Minute)
		gets := r.sent("GET")
		if len(gets) != 3 || gets[1].Header.Get("Last-Event-Id") != "7" || gets[2].Header.Get("Last-Event-Id") != "" {
			r.t.Errorf("GETs %+v", gets)
		}
		r.server.Broadcast(numbered)
		synctest.Wait()
		r.restart()
		time.Sleep(time.Minute)
		for _, get := range r.sent("GET") {
			if get.Header.Get("Mcp-Session-Id") != r.session.ID() && get.Header.Get("Last-Event-Id") != "" {
				r.t.Errorf("an event of the old session was asked for: %+v", get)
			}
		}
		r.listens()
	})
}

// TestStreamTakesNewCredentials: the stream is opened again with the credentials that
// the session uses by then.
func TestStreamTakesNewCredentials(t *testing.T) {
	inBubble(t, middlewaretest.Options{StandaloneSSE: true}, middleware.Options{}, func(r *healRig) {
		ctx := context.WithValue(r.t.Context(), tokenKey{}, "Bearer second")
		if _, _, err := r.callIn(ctx, "read_weather", nil); err != nil {
			r.t.Fatal(err)
		}
		r.restart()
		time.Sleep(time.Minute)
		for _, method := range []string{"GET", "initialize"} {
			all := r.sent(method)
			if got := all[len(all)-1].Header.Get("Authorization"); got != "Bearer second" {
				r.t.Errorf("%s went out with %q", method, got)
			}
		}
	})
}

// TestLostSessionIsQuiet: a session that stays lost is not asked for again and again,
// and ends at once when it is closed.
func TestLostSessionIsQuiet(t *testing.T) {
	inBubble(t, middlewaretest.Options{StandaloneSSE: true}, middleware.Options{}, func(r *healRig) {
		r.restart()
		time.Sleep(time.Minute)
		r.server.SetHandshake(middlewaretest.Handshake{Name: "impostor"})
		r.restart()
		time.Sleep(time.Minute)
		requests := r.server.Counts().Requests
		time.Sleep(time.Hour)
		if n := r.server.Counts().Requests; n != requests {
			r.t.Errorf("%d requests in an hour", n-requests)
		}
		r.refused()
		begun := time.Now()
		_ = r.session.Close()
		if d := time.Since(begun); d > time.Second {
			r.t.Errorf("closing took %v", d)
		}
	})
}

// TestStreamWithoutHeaders: a server that keeps the headers of its own stream back holds
// up neither Connect nor calls, and its events arrive once it sends them; one that says
// late that it has no stream is not asked again.
func TestStreamWithoutHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		fault middlewaretest.Fault
		gets  int
	}{
		"silent":   {middlewaretest.Hang(), 1},
		"stream":   {middlewaretest.Fault{Name: "late"}.Delayed(time.Minute), 1},
		"refused":  {middlewaretest.Status(405).Delayed(time.Minute), 1},
		"occupied": {middlewaretest.Status(503).Delayed(time.Minute), 2},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, middlewaretest.Options{StandaloneSSE: true}, middleware.Options{}, func(r *healRig) {
				_ = r.session.Close()
				gets := r.server.Counts().Gets
				r.server.ScriptMethod("GET", c.fault)
				begun := time.Now()
				r.session = r.connect(r.stack)
				if took := time.Since(begun); took > time.Second {
					r.t.Errorf("Connect took %v", took)
				}
				r.stillServes(middlewaretest.Fault{})
				time.Sleep(3 * time.Minute)
				r.stillServes(middlewaretest.Fault{})
				if name == "stream" || name == "occupied" {
					r.listens()
				}
				if n := r.server.Counts().Gets - gets; n != c.gets {
					r.t.Errorf("%d GETs", n)
				}
			})
		})
	}
}

// TestUnsendableID: the server's own stream outlives an event id that no header can carry.
func TestUnsendableID(t *testing.T) {
	inBubble(t, middlewaretest.Options{StandaloneSSE: true}, middleware.Options{}, func(r *healRig) {
		r.server.Broadcast("id: a\x01b\ndata:\n\n")
		synctest.Wait()
		r.server.EndStreams()
		time.Sleep(time.Minute)
		if gets := r.sent("GET"); len(gets) != 2 || gets[1].Header.Get("Last-Event-Id") != "" {
			r.t.Errorf("GETs %+v", gets)
		}
		r.listens()
	})
}
