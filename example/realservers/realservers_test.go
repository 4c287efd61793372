package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
)

// pretending, in the environment, makes this test program a server, in the place of Node.
const pretending = "SURECALL_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(pretending) != "" {
		pretend()
		return
	}
	goleak.VerifyTestMain(m)
}

// pretend is a server over HTTP where there is a port, and else over stdio.
func pretend() {
	s := mcp.NewServer(&mcp.Implementation{Name: "pretender", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "env"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, map[string]any{"home": os.Getenv("HOME"), "port": os.Getenv("PORT"), "at": time.Now().UTC().Format(time.RFC3339Nano)}, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "work"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{ Job int }) (*mcp.CallToolResult, any, error) {
		select {
		case <-ctx.Done():
			time.Sleep(time.Second) // nothing that stops at once: its answer could still be in time
		case <-time.After(time.Minute):
		}
		return nil, nil, nil
	})
	if port := os.Getenv("PORT"); port != "" {
		_ = http.ListenAndServe("127.0.0.1:"+port, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
		return
	}
	_ = s.Run(context.Background(), &mcp.StdioTransport{})
}

// kitchen starts a middlewaretest server for each client, the first for the bare one, and
// lets change make the second another.
func kitchen(t *testing.T, change func(bare, wrapped *middlewaretest.Server)) starter {
	t.Helper()
	both := make([]*middlewaretest.Server, 2)
	for i := range both {
		both[i] = middlewaretest.NewServer(&middlewaretest.Options{Version: middlewaretest.Version20251125})
		t.Cleanup(both[i].Close)
		both[i].SetTool(value(`{"content":[{"type":"text","text":"at 2026-01-02T03:04:05Z"}],"structuredContent":{"n":[1,{"m":true}]}}`))
	}
	change(both[0], both[1])
	started := 0
	return func(context.Context) (*process, error) {
		s := both[started]
		started++
		return &process{dir: t.TempDir(), close: func() {}, kill: s.Close, connect: func(stack *middleware.Stack) mcp.Transport {
			c := s.Client()
			if stack != nil {
				c = stack.HTTPClient(c)
			}
			return &mcp.StreamableClientTransport{Endpoint: s.URL(), HTTPClient: c}
		}}, nil
	}
}

// value is a tool that answers with a result as it is.
func value(result string) middlewaretest.Tool {
	return middlewaretest.Tool{Name: "value", Run: func(context.Context, middlewaretest.Call) middlewaretest.Result {
		return middlewaretest.Result{Raw: json.RawMessage(result)}
	}}
}

// The comparison notices every kind of difference, names its place, and takes nothing for
// one that is none.
func TestDifferencesAreNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		result string // of the wrapped client's server
		fault  middlewaretest.Fault
		want   string
	}{
		"nothing":              {`{"content":[{"type":"text","text":"at 2026-01-02T03:04:05Z"}],"structuredContent":{"n":[1,{"m":true}]}}`, middlewaretest.Fault{}, ""},
		"another time":         {`{"structuredContent":{"n":[1,{"m":true}]},"content":[{"type":"text","text":"at 2027-01-02T03:04:05.6Z"}]}`, middlewaretest.Fault{}, ""},
		"a text":               {`{"content":[{"type":"text","text":"on 2026-01-02T03:04:05Z"}],"structuredContent":{"n":[1,{"m":true}]}}`, middlewaretest.Fault{}, `result.content[0].text: bare "at {time}", wrapped "on {time}"`},
		"a number":             {`{"content":[{"type":"text","text":"at 2026-01-02T03:04:05Z"}],"structuredContent":{"n":[2,{"m":true}]}}`, middlewaretest.Fault{}, `result.structuredContent.n[0]: bare 1, wrapped 2`},
		"a type":               {`{"content":[{"type":"text","text":"at 2026-01-02T03:04:05Z"}],"structuredContent":{"n":[1,{"m":"true"}]}}`, middlewaretest.Fault{}, `result.structuredContent.n[1].m: bare true, wrapped "true"`},
		"a composite":          {`{"content":[{"type":"text","text":"at 2026-01-02T03:04:05Z"}],"structuredContent":{"n":[{},{"m":true}]}}`, middlewaretest.Fault{}, `result.structuredContent.n[0]: bare 1, wrapped {}`},
		"a missing member":     {`{"content":[{"type":"text","text":"at 2026-01-02T03:04:05Z"}],"structuredContent":{"n":[1,{}]}}`, middlewaretest.Fault{}, `result.structuredContent.n[1].m: bare alone: true`},
		"one member more":      {`{"content":[{"type":"text","text":"at 2026-01-02T03:04:05Z"}],"structuredContent":{"n":[1,{"m":true}]},"isError":true}`, middlewaretest.Fault{}, `result.isError: wrapped alone: true`},
		"one item more":        {`{"content":[{"type":"text","text":"at 2026-01-02T03:04:05Z"}],"structuredContent":{"n":[1,{"m":true},2]}}`, middlewaretest.Fault{}, `result.structuredContent.n: bare [1,{"m":true}], wrapped [1,{"m":true},2]`},
		"a failure of one":     {`{"content":[]}`, middlewaretest.Status(503), "the wrapped client alone fails: surecall: tool \"value\": HTTP_ERROR 503"},
		"the list of tools":    {`{"content":[{"type":"text","text":"at 2026-01-02T03:04:05Z"}],"structuredContent":{"n":[1,{"m":true}]}}`, middlewaretest.Fault{}, "tools: bare ["},
		"a tool's description": {`{"content":[{"type":"text","text":"at 2026-01-02T03:04:05Z"}],"structuredContent":{"n":[1,{"m":true}]}}`, middlewaretest.Fault{}, `.description: wrapped alone: "changed"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{name: "kitchen", transport: "HTTP", calls: []call{{tool: "value", args: "{}"}}}
			s.start = kitchen(t, func(_, wrapped *middlewaretest.Server) {
				tool := value(c.result)
				if name == "a tool's description" {
					tool.Description = "changed"
				}
				wrapped.SetTool(tool)
				wrapped.Script("value", c.fault)
				if name == "the list of tools" {
					wrapped.RemoveTool("pay")
				}
			})
			r, err := compare(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			r.absent = nil // the kitchen has more tools
			if err = r.wrong(); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

// Where the bare client fails, the wrapped one must have a name for that; a failure of
// both is no difference.
func TestFailuresAreNamed(t *testing.T) {
	s := &server{name: "kitchen", transport: "HTTP", calls: []call{{tool: "value", args: "{}"}, {tool: "value", args: "{}"}}}
	s.start = kitchen(t, func(bare, wrapped *middlewaretest.Server) {
		for _, k := range []*middlewaretest.Server{bare, wrapped} {
			k.Script("value", middlewaretest.Fault{}, middlewaretest.Reset().Executed())
		}
	})
	r, err := compare(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r.print(&out)
	if got := r.rows[1]; got.verdict() != "named" || got.outcome() != "NETWORK_ERROR, unknown" || len(got.differ) > 0 {
		t.Errorf("%s", &out)
	}
	if err := r.wrong(); err == nil || !strings.Contains(err.Error(), "tool pay is not called") || strings.Contains(err.Error(), "tool value") {
		t.Errorf("tools that are not called: %v", err)
	}
	unnamed := newRow(call{}, answer{err: context.Canceled}, answer{err: context.Canceled, record: r.rows[1].wrapped.record})
	if len(unnamed.differ) == 0 {
		t.Error("a failure without a name passes")
	}
	if newRow(call{}, answer{}, answer{}).differ == nil {
		t.Error("a call without a record passes")
	}
}

// Processes are started over both transports, told apart by nothing, and killed at work.
func TestProcesses(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	inst := &installation{node: program}
	env := []string{pretending + "=1", "GORACE=atexit_sleep_ms=0"}
	calls := []call{{tool: "env", args: "{}"}, {tool: "work", args: `{"Job":1}`, deadline: 300 * time.Millisecond}, {tool: "work", args: `{"Job":2}`, kill: true}}
	all := []*server{
		{name: "a", transport: "stdio", start: inst.stdio("a", nil, env), calls: calls},
		{name: "b", transport: "HTTP", start: inst.http("b", nil, env), calls: []call{calls[0], {tool: "work", args: `{"Job":"none"}`}}},
	}
	var out bytes.Buffer
	reports, err := compareAll(t.Context(), all, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	text := page(&installation{versions: map[string]string{"a": "1.2.3"}}, reports)
	for _, want := range []string{"| `a` | 1.2.3 |", "## a over stdio", "2 tools, all of them called", "| `env` | same | result | TOOL_SUCCESS, answered |",
		"| `work` `{\"Job\":1}`, deadline 300ms | named | error | TIMEOUT, unknown |", "| `work` `{\"Job\":2}`, the server is killed meanwhile | named | error | NETWORK_ERROR, unknown |", "## b over HTTP"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// What is wrong makes the check fail, and leaves the table as it was.
func TestWrongCalls(t *testing.T) {
	table := filepath.Join(t.TempDir(), "table.md")
	for _, args := range [][]string{{"-wrong"}, {"-servers", t.TempDir(), "-table", table}} {
		var out, errs bytes.Buffer
		if status := run(t.Context(), args, &out, &errs); status != 2 || errs.Len() == 0 {
			t.Errorf("%q: status %d: %s", args, status, &errs)
		}
	}
	if _, err := os.Stat(table); err == nil {
		t.Error("a table was written")
	}
	if _, err := compareAll(t.Context(), []*server{{name: "none", transport: "stdio", start: (&installation{node: "no-such-program"}).stdio("none", nil, nil)}}, &bytes.Buffer{}); err == nil {
		t.Error("a server that does not start passes")
	}
}

// The page in docs/ is of the versions that are installed and of the calls that are made.
func TestPageIsCurrent(t *testing.T) {
	text, err := os.ReadFile("../../docs/real-servers.md")
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := readPackage("package.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, version := range wanted.Dependencies {
		if !strings.Contains(string(text), "| `"+name+"` | "+version+" |") {
			t.Errorf("the page is not of %s %s", name, version)
		}
	}
	if !strings.HasPrefix(string(text), head) {
		t.Error("the page has another head")
	}
	for _, s := range servers(&installation{}) {
		for _, c := range s.calls {
			if !strings.Contains(string(text), "| "+c.cell()+" |") {
				t.Errorf("the page lacks %s", c.title())
			}
		}
	}
}
