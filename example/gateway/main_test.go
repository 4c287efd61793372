package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// asServer is the argument that makes the test binary a server on stdio.
const asServer = "stdio-server"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asServer {
		serveStdio()
		return
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // or each server takes a second to end
	goleak.VerifyTestMain(m)
}

// serveStdio is a file server of sorts, on the SDK's own server.
func serveStdio() {
	s := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1"}, nil)
	type in struct {
		Path string `json:"path"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "read_file", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, in in) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "content of " + in.Path}}}, nil, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "die"}, func(context.Context, *mcp.CallToolRequest, in) (*mcp.CallToolResult, any, error) {
		os.Exit(3)
		return nil, nil, nil
	})
	_ = s.Run(context.Background(), &mcp.StdioTransport{})
}

// fixture is a running gateway over three upstreams: fs over stdio, every over HTTP, and
// flaky, which fails as it is told. The last two speak the two protocol versions.
type fixture struct {
	t             *testing.T
	every, flaky  *middlewaretest.Server
	url           string
	mu            sync.Mutex
	records, logs bytes.Buffer
}

// rules is the policy of the example, so that it is tested too, with the waits of a test
// and what else a test needs before it.
func rules(t *testing.T, first ...policy.Rule) *policy.Policy {
	t.Helper()
	p, err := policy.Load("policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	quick := policy.Rule{Settings: policy.Settings{Retry: policy.Retry{Backoff: time.Millisecond}}}
	p.Rules = slices.Concat(first, []policy.Rule{quick}, p.Rules)
	return p
}

func start(t *testing.T, p *policy.Policy) *fixture {
	t.Helper()
	f := &fixture{
		t:     t,
		every: middlewaretest.NewServer(&middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true}),
		flaky: middlewaretest.NewServer(nil),
	}
	t.Cleanup(f.every.Close)
	t.Cleanup(f.flaky.Close)
	f.serve(p, []string{"fs=" + os.Args[0] + " " + asServer, "every=" + f.every.URL(), "flaky=" + f.flaky.URL()})
	return f
}

// serve starts the gateway and waits until each upstream has offered its tools.
func (f *fixture) serve(p *policy.Policy, args []string) {
	specs, err := parseSpecs(args)
	if err != nil {
		f.t.Fatal(err)
	}
	stack := middleware.New(&middleware.Options{Policy: p, OnRecord: printer(f.locked(&f.records))})
	g := newGateway(stack, specs, log.New(f.locked(&f.logs), "", 0))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { g.run(ctx) })
	open := g.handler()
	protected := auth.RequireBearerToken(verify, nil)(open)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			protected.ServeHTTP(w, r)
			return
		}
		open.ServeHTTP(w, r)
	}))
	f.url = server.URL
	f.t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		cancel()
		running.Wait()
	})
	f.eventually("every upstream connects", func() bool {
		return strings.Count(f.logged(), "connected") == len(specs)
	})
}

// verify takes a token for its user's name.
func verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
}

type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func (f *fixture) locked(w io.Writer) io.Writer { return locked{&f.mu, w} }

func (f *fixture) logged() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.logs.String()
}

func (f *fixture) eventually(what string, holds func() bool) {
	f.t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("never: %s\n%s", what, f.logged())
		}
	}
}

// outcomes are the upstream calls so far: upstream, tool and outcome.
func (f *fixture) outcomes() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for d := json.NewDecoder(bytes.NewReader(f.records.Bytes())); ; {
		var r observe.Record
		if d.Decode(&r) != nil {
			return all
		}
		all = append(all, fmt.Sprintf("%s %s %s", r.Server, r.Tool, r.Outcome))
	}
}

// An agent is a client of the gateway.
type agent struct {
	*mcp.ClientSession
	t *testing.T
}

// agent connects a bare client, or one with a stack of its own, as some user or nobody.
func (f *fixture) agent(stack *middleware.Stack, user string) *agent {
	f.t.Helper()
	return f.connect(stack, as{user: user}, nil)
}

// legacyAgent is a bare client that knows nothing newer than 2025-11-25.
func (f *fixture) legacyAgent() *agent {
	f.t.Helper()
	a := f.connect(nil, as{legacy: true}, nil)
	if v := a.InitializeResult().ProtocolVersion; v != middlewaretest.Version20251125 {
		f.t.Fatalf("it speaks %s", v)
	}
	return a
}

func (f *fixture) connect(stack *middleware.Stack, who as, opts *mcp.ClientOptions) *agent {
	f.t.Helper()
	pool := http.DefaultTransport.(*http.Transport).Clone()
	who.base = pool
	hc := &http.Client{Transport: who}
	c := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, opts)
	if stack != nil {
		c.AddSendingMiddleware(stack.Middleware()...)
		hc = stack.HTTPClient(hc)
	}
	s, err := c.Connect(observe.WithServer(f.t.Context(), "gateway"), &mcp.StreamableClientTransport{Endpoint: f.url, HTTPClient: hc}, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = s.Close(); pool.CloseIdleConnections() })
	return &agent{s, f.t}
}

// as is a RoundTripper with a user's token, if there is one, or for a client that does
// not know how a 2026-07-28 session begins.
type as struct {
	user   string
	legacy bool
	base   http.RoundTripper
}

func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.user != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+a.user)
	}
	if a.legacy && r.Header.Get("Mcp-Method") == "server/discover" {
		_ = r.Body.Close()
		return &http.Response{StatusCode: 400, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	return a.base.RoundTrip(r)
}

// call makes a call that has to come back as a result.
func (a *agent) call(ctx context.Context, tool string, args map[string]any, meta mcp.Meta) *mcp.CallToolResult {
	a.t.Helper()
	res, err := a.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args, Meta: meta})
	if err != nil {
		a.t.Fatalf("%s: %v", tool, err)
	}
	return res
}

// told is a result's report, its zero value where there is none.
func told(t *testing.T, res *mcp.CallToolResult) (r report) {
	t.Helper()
	b, err := json.Marshal(res.Meta[middleware.MetaOutcome])
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func text(res *mcp.CallToolResult) string {
	if len(res.Content) == 1 {
		if c, ok := res.Content[0].(*mcp.TextContent); ok {
			return c.Text
		}
	}
	return ""
}

// The program serves what it is told to, and says what is wrong.
func TestProgram(t *testing.T) {
	s := middlewaretest.NewServer(nil)
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read, write := io.Pipe()
	status := make(chan int, 1)
	go func() {
		status <- run(ctx, []string{"-listen", "127.0.0.1:0", "-policy", "policy.yaml", "every=" + s.URL()}, io.Discard, write)
		_ = write.Close()
	}()
	var url string
	if _, err := fmt.Fscanf(read, "gateway: serving %s\n", &url); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, read) }()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if got := <-status; got != 0 {
		t.Errorf("status %d", got)
	}
}

func TestWrongCalls(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{nil, 2, "no upstream"},
		{[]string{"a_b=http://127.0.0.1:1/mcp"}, 2, `"a_b"`},
		{[]string{"a="}, 2, "neither"},
		{[]string{"a=http://"}, 2, "not a URL"},
		{[]string{"a=x", "a=y"}, 2, "two upstreams"},
		{[]string{"-wrong"}, 2, "-wrong"},
		{[]string{"-policy", filepath.Join(t.TempDir(), "none.yaml"), "a=x"}, 2, "none.yaml"},
		{[]string{"-policy", "policy.yaml", "-listen", "no port", "a=x"}, 1, "no port"},
	} {
		var errs bytes.Buffer
		if status := run(t.Context(), c.args, io.Discard, &errs); status != c.status || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%q: status %d: %s", c.args, status, &errs)
		}
	}
}
