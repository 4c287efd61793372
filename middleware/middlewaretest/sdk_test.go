package middlewaretest_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

// combinations are all servers that options can make.
func combinations() []middlewaretest.Options {
	var all []middlewaretest.Options
	for bits := range 1 << 3 {
		on := func(i int) bool { return bits>>i&1 == 1 }
		all = append(all, middlewaretest.Options{Stream: on(0), EventIDs: on(1), HTTP2: on(2)})
	}
	for bits := range 1 << 5 {
		on := func(i int) bool { return bits>>i&1 == 1 }
		all = append(all, middlewaretest.Options{
			Version: middlewaretest.Version20251125,
			Stream:  on(0), EventIDs: on(1), HTTP2: on(2), Sessions: on(3), StandaloneSSE: on(4),
		})
	}
	return all
}

func describe(o middlewaretest.Options) string {
	if o.Version == "" {
		o.Version = middlewaretest.Version20260728
	}
	name := o.Version
	for _, flag := range []struct {
		name string
		on   bool
	}{{"sessions", o.Sessions}, {"stream", o.Stream}, {"ids", o.EventIDs}, {"h2", o.HTTP2}, {"get", o.StandaloneSSE}} {
		if flag.on {
			name += "+" + flag.name
		}
	}
	return name
}

func connect(t *testing.T, s *middlewaretest.Server, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.URL(), HTTPClient: s.Client()}, nil)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return cs
}

func textOf(t *testing.T, r *mcp.CallToolResult) string {
	t.Helper()
	if len(r.Content) != 1 {
		t.Fatalf("content: %v", r.Content)
	}
	return r.Content[0].(*mcp.TextContent).Text
}

// TestOfficialClient: the bare official client works with every faultless server.
func TestOfficialClient(t *testing.T) {
	for _, o := range combinations() {
		t.Run(describe(o), func(t *testing.T) {
			t.Parallel()
			s := middlewaretest.NewServer(&o)
			defer s.Close()
			talk(t, s, o)
		})
	}
}

func talk(t *testing.T, s *middlewaretest.Server, o middlewaretest.Options) {
	asked, progressed := make(chan string, 1), make(chan float64, 10)
	cs := connect(t, s, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked <- r.Params.Message
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			progressed <- r.Params.Progress
		},
	})
	defer cs.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()

	tools, err := cs.ListTools(ctx, nil)
	if err != nil || len(tools.Tools) != 10 {
		t.Fatalf("tools: %v, %v", tools, err)
	}
	for _, tool := range tools.Tools {
		if tool.Name == "progress" {
			continue
		}
		r, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: tool.Name, Arguments: map[string]any{"size": 10, "ms": 1}})
		if err != nil {
			t.Fatalf("%s: %v", tool.Name, err)
		}
		if r.IsError != (tool.Name == "fail") {
			t.Fatalf("%s: isError %v: %s", tool.Name, r.IsError, textOf(t, r))
		}
		if n := s.Effects(tool.Name); n != 1 {
			t.Errorf("%s: %d effects", tool.Name, n)
		}
	}
	if q := <-asked; q != "Go ahead?" {
		t.Errorf("question %q", q)
	}
	if n := s.Counts().Elicitations; n != 1 {
		t.Errorf("%d elicitations", n)
	}
	p := &mcp.CallToolParams{Name: "progress"}
	p.SetProgressToken("p1")
	if _, err := cs.CallTool(ctx, p); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		select {
		case got := <-progressed:
			if got != float64(i+1) {
				t.Errorf("progress %v, want %d", got, i+1)
			}
		case <-ctx.Done():
			t.Fatal("no progress")
		}
	}
	if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "anything"}); err != nil {
		t.Errorf("every name is callable: %v", err)
	}
	wantProto := "HTTP/1.1"
	if o.HTTP2 {
		wantProto = "HTTP/2.0"
	}
	for _, e := range s.Entries() {
		if e.Proto != wantProto {
			t.Fatalf("protocol %s", e.Proto)
		}
		if e.HTTPMethod == http.MethodPost && e.Method == "tools/call" && o.Sessions && e.Session == "" {
			t.Fatalf("no session: %+v", e)
		}
	}
	if c := s.Counts(); o.Version == "" && (c.Discovers != 1 || c.Initializes != 0 || c.Gets != 0) ||
		o.Version != "" && (c.Discovers != 1 || c.Initializes != 1) {
		t.Errorf("counts %+v", c)
	}
}

func TestListChanged(t *testing.T) {
	for _, o := range []middlewaretest.Options{
		{}, {Version: middlewaretest.Version20251125, StandaloneSSE: true, Sessions: true},
	} {
		t.Run(describe(o), func(t *testing.T) {
			s := middlewaretest.NewServer(&o)
			defer s.Close()
			changed := make(chan bool, 1)
			cs := connect(t, s, &mcp.ClientOptions{
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- true },
			})
			defer cs.Close()
			eventually(t, func() bool { return s.Subscribers() == 1 })
			s.SetTool(middlewaretest.Tool{Name: "new"})
			s.NotifyToolsChanged()
			select {
			case <-changed:
			case <-time.After(10 * time.Second):
				t.Fatal("not told")
			}
			tools, err := cs.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) != 11 {
				t.Fatalf("%v, %v", tools, err)
			}
		})
	}
}

// eventually waits for what another goroutine is about to do.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); {
		if time.Now().After(end) {
			t.Fatal("did not happen")
		}
		time.Sleep(time.Millisecond)
	}
}
