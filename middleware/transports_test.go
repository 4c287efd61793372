package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

const stdioEnv = "SURECALL_TEST_STDIO_SERVER"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(stdioEnv) != "":
		serveStdio()
		return
	case os.Getenv(lineServerEnv) != "":
		runLineServer()
		return
	}
	goleak.VerifyTestMain(m)
}

// serveStdio is the child process of TestStdio.
func serveStdio() {
	if err := plainServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// plainServer is an SDK server for transports without HTTP.
func plainServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "plain", Version: "1"}, nil)
	add := func(name string, f func(context.Context) error) {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			return nil, nil, f(ctx)
		})
	}
	add("ok", func(context.Context) error { return nil })
	add("fail", func(context.Context) error { return errors.New("as asked") })
	add("hang", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	add("die", func(context.Context) error { os.Exit(3); return nil })
	return server
}

// connectPlain connects a wrapped client over any transport.
func connectPlain(t *testing.T, transport mcp.Transport) (*mcp.ClientSession, func() *observe.Record) {
	t.Helper()
	records := make(chan *observe.Record, 100)
	stack := middleware.New(&middleware.Options{
		Server:   "plain",
		Policy:   &policy.Policy{Rules: []policy.Rule{{Server: "plain", Tool: "ok", Settings: policy.Settings{Safety: policy.ReadOnly}}}},
		OnRecord: checked(t, func(_ context.Context, r *observe.Record) { records <- r }),
	})
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	client.AddSendingMiddleware(stack.Middleware()...)
	cs, err := client.Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	return cs, func() *observe.Record { return <-records }
}

// checkPlain makes the calls that every transport answers alike.
func checkPlain(t *testing.T, cs *mcp.ClientSession, record func() *observe.Record) {
	t.Helper()
	for _, c := range []struct {
		tool     string
		outcome  observe.Outcome
		delivery observe.Delivery
	}{
		{"ok", observe.ToolSuccess, observe.Answered},
		{"fail", observe.ToolError, observe.Answered},
		{"nosuch", observe.JSONRPCError, observe.Answered},
		{"hang", observe.Timeout, observe.Unknown},
		{"ok", observe.ToolSuccess, observe.Answered},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if c.tool == "hang" {
			ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		}
		_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: c.tool})
		cancel()
		rec := record()
		if rec.Outcome != c.outcome || rec.Delivery != c.delivery || rec.Server != "plain" || rec.PostCount != 0 || (err == nil) != c.outcome.Usable() {
			t.Errorf("%s: err %v, record %+v", c.tool, err, rec)
		}
	}
}

func TestInMemory(t *testing.T) {
	here, there := mcp.NewInMemoryTransports()
	ss, err := plainServer().Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	cs, record := connectPlain(t, here)
	defer cs.Close()
	checkPlain(t, cs, record)
}

func TestStdio(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), stdioEnv+"=1")
	cs, record := connectPlain(t, &mcp.CommandTransport{Command: cmd})
	defer cs.Close()
	checkPlain(t, cs, record)

	start := time.Now()
	_, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "die"})
	if rec := record(); rec.Outcome != observe.NetworkError || rec.Delivery != observe.Unknown || time.Since(start) > 5*time.Second {
		t.Errorf("a process that died: err %v, record %+v", err, rec)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrConnectionClosed) {
		t.Errorf("a framework would run it again: %v", err)
	}
	_, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "fail"})
	if rec := record(); rec.Outcome != observe.NetworkError || err == nil {
		t.Errorf("a call afterwards: err %v, record %+v", err, rec)
	}
}

// stuck is a child process that does not read its input after the handshake.
type stuck struct {
	mcp.Transport
	release chan struct{}
}

type stuckConn struct {
	mcp.Connection
	release chan struct{}
}

func (s stuck) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := s.Transport.Connect(ctx)
	return stuckConn{conn, s.release}, err
}

func (c stuckConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	if r, ok := msg.(*jsonrpc.Request); ok && r.Method == "tools/call" {
		<-c.release
	}
	return c.Connection.Write(ctx, msg)
}

// TestStuckPeer: a write that blocks does not hold the call beyond its deadline.
func TestStuckPeer(t *testing.T) {
	here, there := mcp.NewInMemoryTransports()
	ss, err := plainServer().Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	release := make(chan struct{})
	cs, record := connectPlain(t, stuck{here, release})
	defer cs.Close()
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	late := lateness(50 * time.Millisecond)
	_, err = cs.CallTool(ctx, &mcp.CallToolParams{Name: "fail"})
	if rec := record(); rec.Outcome != observe.Timeout || rec.Delivery != observe.Unknown || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err %v, record %+v", err, rec)
	}
	if over := late(); over > 150*time.Millisecond {
		t.Errorf("returned %v after its deadline", over)
	}
}

// TestServersOfOneClient: one client, two servers; each known by what the host says,
// with rules and breakers of its own.
func TestServersOfOneClient(t *testing.T) {
	bank, shop := middlewaretest.NewServer(nil), middlewaretest.NewServer(nil)
	defer bank.Close()
	defer shop.Close()
	var last *observe.Record
	stack := middleware.New(&middleware.Options{
		Policy: &policy.Policy{Rules: []policy.Rule{
			{Name: "bank", Server: "bank", Settings: policy.Settings{Safety: policy.ReadOnly, Retry: policy.Retry{Repeats: -1}, Breaker: policy.Breaker{Failures: 1}}},
			{Name: "shop", Server: shop.URL(), Settings: policy.Settings{Safety: policy.Idempotent}},
		}},
		OnRecord: checked(t, func(_ context.Context, r *observe.Record) { last = r }),
	})
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	client.AddSendingMiddleware(stack.Middleware()...)
	hc := stack.HTTPClient(nil)
	defer hc.CloseIdleConnections()
	connect := func(ctx context.Context, url string) *mcp.ClientSession {
		cs, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: hc}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return cs
	}
	toBank := connect(observe.WithServer(t.Context(), "bank"), bank.URL()+"?token=secret")
	defer toBank.Close()
	toShop := connect(t.Context(), shop.URL())
	defer toShop.Close()

	bank.Script("pay", middlewaretest.Status(500))
	_, _ = toBank.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"})
	if last.Server != "bank" || last.Rule != "bank" || last.Breaker != "open" || last.Endpoint != bank.URL() {
		t.Errorf("record %+v", last)
	}
	if _, err := toShop.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"}); err != nil || last.Server != shop.URL() || last.Rule != "shop" {
		t.Errorf("err %v, record %+v", err, last)
	}
}

// TestAnnotations: a server's hints count only where the policy trusts it.
func TestAnnotations(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		r := newRig(t, middlewaretest.Options{}, policy.Rule{Settings: policy.Settings{TrustAnnotations: new(trusted)}})
		r.stack = middleware.New(&middleware.Options{
			Policy:   &policy.Policy{Rules: []policy.Rule{{Settings: policy.Settings{TrustAnnotations: new(trusted)}}}},
			OnRecord: checked(t, func(_ context.Context, rec *observe.Record) { r.records = append(r.records, rec) }),
		})
		r.session = r.connect(t, r.stack)
		if _, err := r.session.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"read_weather": "unsafe", "set_label": "unsafe", "pay": "unsafe"}
		if trusted {
			want = map[string]string{"read_weather": "read_only", "set_label": "idempotent", "pay": "unsafe"}
		}
		for tool, safety := range want {
			if _, rec, _ := r.call(tool, time.Minute); rec.Safety != safety {
				t.Errorf("trusted %t: %s is %s, want %s", trusted, tool, rec.Safety, safety)
			}
		}
	}
}

// TestEachAlone: every middleware works by itself.
func TestEachAlone(t *testing.T) {
	var records int
	opts := &middleware.Options{
		Policy:   &policy.Policy{Rules: append([]policy.Rule{{Tool: "pay", Settings: policy.Settings{Surface: policy.SurfaceModel}}}, classes()...)},
		OnRecord: checked(t, func(context.Context, *observe.Record) { records++ }),
	}
	for name, c := range map[string]struct {
		layer mcp.Middleware
		check func(t *testing.T, s *middlewaretest.Server, cs *mcp.ClientSession)
	}{
		"Record": {middleware.Record(opts), func(t *testing.T, _ *middlewaretest.Server, cs *mcp.ClientSession) {
			if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"}); err != nil || records != 1 {
				t.Errorf("%v, %d records", err, records)
			}
		}},
		"Surface": {middleware.Surface(opts), func(t *testing.T, s *middlewaretest.Server, cs *mcp.ClientSession) {
			s.Script("pay", middlewaretest.Status(503))
			res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"})
			if e, ok := middleware.FailureOf(res); err != nil || !ok || e.Outcome != observe.HTTPError || e.Delivery != observe.Unknown {
				t.Errorf("err %v, failure %v", err, e)
			}
		}},
		"Key": {middleware.Key(opts), func(t *testing.T, s *middlewaretest.Server, cs *mcp.ClientSession) {
			_, _ = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"})
			entries := s.Entries()
			if e := entries[len(entries)-1]; e.Key == "" {
				t.Errorf("entry %+v", e)
			}
		}},
		"Retry": {middleware.Retry(opts), func(t *testing.T, s *middlewaretest.Server, cs *mcp.ClientSession) {
			s.Script("read_weather", middlewaretest.Status(503))
			if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_weather"}); err != nil || s.Posts("read_weather") != 2 {
				t.Errorf("%v after %d POSTs", err, s.Posts("read_weather"))
			}
			s.Script("pay", middlewaretest.Reset().Executed())
			if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"}); err == nil || s.Effects("pay") != 1 {
				t.Errorf("%v, %d effects", err, s.Effects("pay"))
			}
		}},
		"Admit": {middleware.Admit(opts), func(t *testing.T, s *middlewaretest.Server, cs *mcp.ClientSession) {
			s.Always("send_mail", middlewaretest.Status(503))
			for range 7 {
				_, _ = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "send_mail"})
			}
			if n := s.Posts("send_mail"); n != 5 {
				t.Errorf("%d POSTs", n)
			}
		}},
		"Attempt": {middleware.Attempt(opts), func(t *testing.T, s *middlewaretest.Server, cs *mcp.ClientSession) {
			s.Script("pay", middlewaretest.Body("login", "text/html", "<html>"))
			_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"})
			var e *observe.Error
			if !errors.As(err, &e) || e.Outcome != observe.UnexpectedContent {
				t.Errorf("error %v", err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := middlewaretest.NewServer(nil)
			defer s.Close()
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			client.AddSendingMiddleware(c.layer)
			hc := &http.Client{Transport: middleware.NewTransport(nil, opts)}
			defer hc.CloseIdleConnections()
			cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.URL(), HTTPClient: hc}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer cs.Close()
			c.check(t, s, cs)
		})
	}
}
