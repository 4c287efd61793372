package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs the program and returns the URL that it prints, and how to end it.
func start(t *testing.T, args ...string) (url string, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	code := make(chan int, 1)
	var stderr strings.Builder
	go func() {
		code <- run(ctx, args, in, &stderr)
		in.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		cancel()
		t.Fatalf("ended with %d: %s", <-code, stderr.String())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return strings.TrimSpace(line), func() int {
		cancel()
		return <-code
	}
}

func connect(t *testing.T, url string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

// control talks to the kitchen's own endpoints.
func control(t *testing.T, method, url, body string, into any) int {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	if into != nil {
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	return resp.StatusCode
}

func TestServe(t *testing.T) {
	for _, args := range [][]string{
		{"-scenario", "errors.tool_error", "-config", `{"message":"no"}`},
		{"-scenario", "errors.tool_error", "-config", `{"message":"no"}`, "-version", "2025-11-25", "-sessions", "-stream", "-standalone", "-event-ids"},
	} {
		url, stop := start(t, args...)
		base := strings.TrimSuffix(url, "/mcp")
		cs := connect(t, url)
		call := func() *mcp.CallToolResult {
			r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		if r := call(); !r.IsError || r.Content[0].(*mcp.TextContent).Text != "no" {
			t.Errorf("result %+v", r)
		}

		var state struct {
			Name      string
			Config    json.RawMessage
			Scenarios []struct{ Name, Meaning string }
			Error     string
		}
		if control(t, "GET", base+"/scenario", "", &state); state.Name != "errors.tool_error" || len(state.Scenarios) != len(middlewaretest.Scenarios()) {
			t.Errorf("state %+v", state)
		}
		if code := control(t, "PUT", base+"/scenario", `{"name":"no.such"}`, &state); code != 400 || !strings.Contains(state.Error, "no.such") {
			t.Errorf("unknown scenario: %d %s", code, state.Error)
		}
		if code := control(t, "PUT", base+"/scenario", `{"name":"baseline"}`, &state); code != 200 || state.Name != "baseline" {
			t.Errorf("baseline: %d %s", code, state.Name)
		}
		if !call().IsError {
			t.Error("the selection holds before the next session")
		}
		_ = cs.Close()
		cs = connect(t, url)
		if call().IsError {
			t.Error("the selection does not hold in the next session")
		}
		_ = cs.Close()

		var ledger struct {
			Counts  middlewaretest.Counts
			Tools   map[string]middlewaretest.ToolCounts
			Entries []middlewaretest.Entry
		}
		control(t, "GET", base+"/ledger", "", &ledger)
		if ledger.Tools["pay"] != (middlewaretest.ToolCounts{Posts: 3, Effects: 3}) || ledger.Counts.Posts == 0 || len(ledger.Entries) != ledger.Counts.Requests {
			t.Errorf("ledger %+v, %d entries", ledger, len(ledger.Entries))
		}
		if code := control(t, "DELETE", base+"/ledger", "", nil); code != 204 {
			t.Errorf("DELETE: %d", code)
		}
		if code := stop(); code != 0 {
			t.Errorf("ended with %d", code)
		}
	}
}

// TestStopWhileHanging: an interrupt ends the program whatever hangs.
func TestStopWhileHanging(t *testing.T) {
	url, stop := start(t, "-scenario", "timeout.uncooperative_hang")
	hung := make(chan error)
	go func() {
		_, err := http.Post(url, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}`))
		hung <- err
	}()
	for posts := 0; posts == 0; {
		var ledger struct{ Counts middlewaretest.Counts }
		control(t, "GET", strings.TrimSuffix(url, "/mcp")+"/ledger", "", &ledger)
		posts = ledger.Counts.Posts
	}
	if code := stop(); code != 0 {
		t.Errorf("ended with %d", code)
	}
	if <-hung == nil {
		t.Error("an answer")
	}
}

func TestList(t *testing.T) {
	var out strings.Builder
	if code := run(t.Context(), []string{"-list"}, &out, io.Discard); code != 0 {
		t.Errorf("ended with %d", code)
	}
	for _, s := range middlewaretest.Scenarios() {
		if !strings.Contains(out.String(), s.Name) {
			t.Errorf("%s is not listed", s.Name)
		}
	}
	out.Reset()
	if code := run(t.Context(), []string{"-h"}, &out, io.Discard); code != 0 || !strings.Contains(out.String(), "-scenario") {
		t.Errorf("help: %d, %s", code, out.String())
	}
}

func TestWrongUse(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{"-nonsense", 2, "not defined"},
		{"more", 2, "unexpected argument"},
		{"-version 2024-11-05", 2, "-version must be"},
		{"-scenario no.such", 2, "unknown scenario"},
		{"-scenario baseline -config {", 2, "-config is not JSON"},
		{`-scenario errors.http_status_sequence -config {"statusCodes":[7]}`, 2, "status 7"},
		{"-addr 127.0.0.1:99999", 1, "invalid port"},
	} {
		var stderr strings.Builder
		code := run(t.Context(), strings.Fields(c.args), io.Discard, &stderr)
		text := stderr.String()
		if code != c.code || !strings.Contains(text, c.text) || strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "kitchen: ") {
			t.Errorf("%s: %d, %q", c.args, code, text)
		}
	}
}
