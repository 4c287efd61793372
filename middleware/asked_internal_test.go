package middleware

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestServerRequestsAreBounded: a server that asks without end, or twice under one id,
// is not remembered beyond a bound, nor beyond its stream; each answer lets one request
// go, however its id is escaped.
func TestServerRequestsAreBounded(t *testing.T) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "data: {\"jsonrpc\":\"2.0\",\"id\":\"a/%d\",\"method\":\"elicitation/create\",\"params\":{}}\n\n", i/2)
	}
	guard := NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
		if body, _ := io.ReadAll(req.Body); !strings.Contains(string(body), "tools/call") {
			return &http.Response{StatusCode: http.StatusAccepted, Header: http.Header{}, Body: http.NoBody}, nil
		}
		h := http.Header{"Content-Type": {"text/event-stream"}}
		return &http.Response{StatusCode: 200, Header: h, ContentLength: -1, Body: io.NopCloser(strings.NewReader(text.String()))}, nil
	}), nil)
	post := func(body string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://fake.test/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, headerProtocolVersion: {"2025-11-25"}, headerSessionID: {"s"}}
		resp, err := guard.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	waiting := func() int {
		guard.requests.mu.Lock()
		defer guard.requests.mu.Unlock()
		return len(guard.requests.waiting)
	}
	resp := post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}`)
	g := resp.Body.(*streamGuard)
	for range 999 {
		g.next()
		g.out = nil
	}
	if n := waiting(); n != maxAsked || g.post.watch.paused != maxAsked {
		t.Errorf("%d requests remembered, %d pauses", n, g.post.watch.paused)
	}
	_ = post(`{"jsonrpc":"2.0","id":"a\/3","result":{}}`).Body.Close()
	_ = post(`{"jsonrpc":"2.0","id":"nobody's","result":{}}`).Body.Close()
	if n := waiting(); n != maxAsked-1 || g.post.watch.paused != maxAsked-1 {
		t.Errorf("after an answer: %d requests, %d pauses", n, g.post.watch.paused)
	}
	_ = resp.Body.Close()
	if n := waiting(); n != 0 || g.post.watch.paused != 0 {
		t.Errorf("after the stream: %d requests, %d pauses", n, g.post.watch.paused)
	}
}

// TestServerRequestNames: a response finds the request that it answers, in whatever form
// the server wrote the id: the SDK writes it anew.
func TestServerRequestNames(t *testing.T) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://fake.test/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	for asked, answered := range map[string]string{
		`1`: `1`, `1.0`: `1`, `1e2`: `100`, `-2.0e0`: `-2`, `"1"`: `"1"`, `"\u0061\/"`: `"a/"`, `"\ud800"`: "\"\ufffd\"", `9007199254740993`: `9007199254740992`,
	} {
		if newServerRequest(req, asked) != newServerRequest(req, answered) {
			t.Errorf("%s is not found by %s", asked, answered)
		}
	}
	if newServerRequest(req, `1`) == newServerRequest(req, `"1"`) {
		t.Error("a number is found by a string")
	}
}
