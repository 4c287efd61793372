package middlewaretest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

// selected starts a server whose first session has a scenario.
func selected(t *testing.T, o middlewaretest.Options, name, config string) *middlewaretest.Server {
	t.Helper()
	s := middlewaretest.NewServer(&o)
	t.Cleanup(s.Close)
	if err := s.Select(name, json.RawMessage(config)); err != nil {
		t.Fatal(err)
	}
	return s
}

func callPay(t *testing.T, cs *mcp.ClientSession) (*mcp.CallToolResult, error) {
	t.Helper()
	return cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"order": "o"}})
}

func TestScenarios(t *testing.T) {
	var names []string
	for _, s := range middlewaretest.Scenarios() {
		names = append(names, s.Name)
		if s.Meaning == "" || strings.Contains(s.Meaning, "\n") || !json.Valid([]byte(s.Config)) {
			t.Errorf("%+v", s)
		}
		srv := middlewaretest.NewUnstarted(nil)
		if err := srv.Select(s.Name, nil); err != nil {
			t.Errorf("%s by default: %v", s.Name, err)
		}
		if err := srv.Select(s.Name, json.RawMessage(s.Config)); err != nil {
			t.Errorf("%s with its own config: %v", s.Name, err)
		}
		if name, config := srv.Selected(); name != s.Name || string(config) != s.Config {
			t.Errorf("selected %s %s", name, config)
		}
	}
	six := []string{"baseline", "errors.http_status_sequence", "errors.jsonrpc_error", "errors.tool_error", "elicitation.approval", "compat.sdk_v2"}
	if !slices.Equal(names[:6], six) {
		t.Errorf("the first six are %v", names[:6])
	}
}

func TestSelectRefuses(t *testing.T) {
	s := middlewaretest.NewUnstarted(&middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true})
	for _, c := range [][3]string{
		{"no.such", "", "unknown scenario"},
		{"baseline", `{"x":1}`, "unknown member"},
		{"baseline", `[]`, "not a JSON object"},
		{"errors.http_status_sequence", `{"statusCodes":"503"}`, "cannot unmarshal"},
		{"errors.http_status_sequence", `{"statusCodes":[99]}`, "status 99"},
		{"errors.http_status_per_method", `{"statuses":{"initialize":[503]}}`, "begins the session"},
		{"errors.malformed_payload", `{"variant":"x"}`, "unknown variant"},
		{"errors.non_compliant_envelope", `{"fault":"reset"}`, "unknown fault"},
		{"fault", `{"fault":"rounds-question"}`, "cannot strike"},
		{"compat.sdk_v2", "", "stateless"},
		{"timeout.late_response", `{"ms":-1}`, "between"},
	} {
		if err := s.Select(c[0], json.RawMessage(c[1])); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s %s: %v, want %q", c[0], c[1], err, c[2])
		}
	}
	if name, _ := s.Selected(); name != middlewaretest.Baseline {
		t.Errorf("selected %s", name)
	}
}

// TestStatusSequence: the sequence counts every POST after the handshake, so that
// tools/list eats the 503.
func TestStatusSequence(t *testing.T) {
	for _, o := range bothVersions() {
		t.Run(describe(o), func(t *testing.T) {
			s := selected(t, o, "errors.http_status_sequence", `{"statusCodes":[503,200,429]}`)
			cs := connect(t, s, nil)
			if _, err := cs.ListTools(t.Context(), nil); err == nil {
				t.Error("tools/list did not get the 503")
			}
			if _, err := callPay(t, cs); err != nil {
				t.Error(err)
			}
			if _, err := callPay(t, cs); err == nil {
				t.Error("the second call did not get the 429")
			}
			if _, err := callPay(t, cs); err != nil {
				t.Error(err)
			}
			if s.Effects("pay") != 2 {
				t.Errorf("%d effects", s.Effects("pay"))
			}
		})
	}
}

// TestNextSession: a selection leaves the sessions alone that have begun.
func TestNextSession(t *testing.T) {
	o := middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true}
	s := middlewaretest.NewServer(&o)
	defer s.Close()
	old := connect(t, s, nil)
	if err := s.Select("errors.jsonrpc_error", nil); err != nil {
		t.Fatal(err)
	}
	renewed := connect(t, s, nil)
	if _, err := callPay(t, old); err != nil {
		t.Errorf("the old session: %v", err)
	}
	if _, err := callPay(t, renewed); err == nil {
		t.Error("the new session has the old scenario")
	}
}

// TestNextDiscover: without sessions a selection holds from the next
// server/discover.
func TestNextDiscover(t *testing.T) {
	s := middlewaretest.NewServer(nil)
	defer s.Close()
	cs := connect(t, s, nil)
	if err := s.Select("errors.jsonrpc_error", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := callPay(t, cs); err != nil {
		t.Errorf("before: %v", err)
	}
	connect(t, s, nil)
	if _, err := callPay(t, cs); err == nil {
		t.Error("after: still the old scenario")
	}
}

func TestErrorScenarios(t *testing.T) {
	for _, o := range bothVersions() {
		for _, c := range []struct {
			name, config string
			wire         string // of the answer to tools/call
			status       int
			ending       string
			effects      int
		}{
			{"baseline", "", `"pay done"`, 200, complete, 1},
			{"errors.jsonrpc_error", `{"code":-32000,"message":"m"}`, `"error":{"code":-32000,"message":"m"}`, 200, complete, 0},
			{"errors.jsonrpc_error", `{"tool":"send_mail"}`, `"pay done"`, 200, complete, 1},
			{"errors.tool_error", "", `"text":"Tool-side failure"}],"isError":true`, 200, complete, 1},
			{"errors.connection_close", "", "", 0, closed, 0},
			{"errors.connection_close", `{"executed":true,"reset":true}`, "", 0, reset, 1},
			{"errors.malformed_payload", "", "{unclosed", 200, complete, 1},
			{"errors.malformed_payload", `{"variant":"wrong_id"}`, `"id":8,`, 200, complete, 1},
			{"errors.malformed_payload", `{"variant":"missing_jsonrpc"}`, `{"id":7,`, 200, complete, 1},
			{"errors.malformed_payload", `{"variant":"duplicate_response"}`, "\n\ndata: {", 200, complete, 1},
			{"errors.http_status_per_method", "", "Service Unavailable", 503, complete, 0},
			{"errors.http_status_per_method", `{"statuses":{"tools/list":[500]}}`, "pay done", 200, complete, 1},
			{"errors.non_compliant_envelope", "", `"error":{`, 200, complete, 1},
			{"timeout.uncooperative_hang", "", "", 0, silent, 1},
			{"timeout.cooperative_deadline", `{"ms":1}`, `"code":-32001`, 200, complete, 0},
			{"timeout.late_response", `{"ms":1}`, "pay done", 200, complete, 1},
			{"fault", "", "", 0, reset, 1},
		} {
			t.Run(describe(o)+"/"+c.name, func(t *testing.T) {
				s := selected(t, o, c.name, c.config)
				session := ""
				if o.Sessions {
					session = legacySession(t, s)
				}
				wait := patience
				if c.ending == silent {
					wait = quiet
				}
				a := sendAndWait(t, s, wait, session, callBody("pay", ""))
				if a.status != c.status || a.ending != c.ending || !strings.Contains(string(a.body), c.wire) || s.Effects("pay") != c.effects {
					t.Errorf("%s, %d effects: %s", a.ending, s.Effects("pay"), a.raw)
				}
			})
		}
	}
}

func TestElicitationScenarios(t *testing.T) {
	for _, o := range bothVersions() {
		for _, c := range []struct {
			name, action string
			isError      bool
			effects      int
		}{
			{"elicitation.approval", "accept", false, 1},
			{"elicitation.approval", "decline", true, 0},
			{"elicitation.decline", "decline", false, 0},
			{"elicitation.url_mode", "accept", false, 1},
		} {
			t.Run(describe(o)+"/"+c.name+"/"+c.action, func(t *testing.T) {
				s := selected(t, o, c.name, "")
				opts, asked := elicit(c.action, nil)
				opts.Capabilities = &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}}
				r, err := callPay(t, connect(t, s, opts))
				if err != nil {
					t.Fatal(err)
				}
				if r.IsError != c.isError || *asked != 1 || s.Effects("pay") != c.effects {
					t.Errorf("isError %v, asked %d, %d effects", r.IsError, *asked, s.Effects("pay"))
				}
			})
		}
	}
}

func TestSDKV2(t *testing.T) {
	s := selected(t, middlewaretest.Options{}, "compat.sdk_v2", "")
	opts, asked := elicit("accept", map[string]any{"closeReason": "done"})
	if r, err := callPay(t, connect(t, s, opts)); err != nil || r.IsError || *asked != 1 || s.Effects("pay") != 1 {
		t.Errorf("2026-07-28: %v, %v, asked %d", r, err, *asked)
	}

	s = selected(t, middlewaretest.Options{Version: middlewaretest.Version20251125}, "compat.sdk_v2", "")
	opts, asked = elicit("accept", map[string]any{"closeReason": "done"})
	cs := connect(t, s, opts)
	r, err := callPay(t, cs)
	if err != nil || !r.IsError || !strings.Contains(textOf(t, r), "closeReason") || s.Effects("pay") != 0 {
		t.Errorf("2025-11-25: %v, %v", r, err)
	}
	r, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"closeReason": "done"}})
	if err != nil || r.IsError || *asked != 0 || s.Effects("pay") != 1 {
		t.Errorf("2025-11-25 again: %v, %v, asked %d", r, err, *asked)
	}
}

func TestHandshakeHangs(t *testing.T) {
	s := selected(t, middlewaretest.Options{}, "timeout.init_hang", "")
	a := sendAndWait(t, s, quiet, "", `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`)
	if a.ending != silent || a.status != 0 {
		t.Errorf("%s: %s", a.ending, a.raw)
	}
}

func TestCatalogScenarios(t *testing.T) {
	for _, o := range bothVersions() {
		o.StandaloneSSE = o.Sessions
		list := func(t *testing.T, cs *mcp.ClientSession) int {
			n := 0
			for _, err := range cs.Tools(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			return n
		}
		t.Run(describe(o), func(t *testing.T) {
			if n := list(t, connect(t, selected(t, o, "catalog.empty", ""), nil)); n != 0 {
				t.Errorf("empty: %d", n)
			}
			s := selected(t, o, "catalog.large", `{"tools":250}`)
			if n := list(t, connect(t, s, nil)); n != 260 || s.Counts().Lists != 3 {
				t.Errorf("large: %d in %d pages", n, s.Counts().Lists)
			}
			s = selected(t, o, "catalog.list_changed", "")
			changed := make(chan bool, 1)
			cs := connect(t, s, &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- true }})
			eventually(t, func() bool { return s.Subscribers() == 1 })
			before := list(t, cs)
			if _, err := callPay(t, cs); err != nil {
				t.Fatal(err)
			}
			<-changed
			if n := list(t, cs); n != before+1 {
				t.Errorf("list_changed: %d, then %d", before, n)
			}
		})
	}
}

// bearer sends a token that can be replaced.
type bearer struct {
	base  http.RoundTripper
	token *string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+*b.token)
	return b.base.RoundTrip(r)
}

func TestTokenLifecycle(t *testing.T) {
	s := selected(t, middlewaretest.Options{}, "auth.token_lifecycle", `{"requests":2}`)
	if a := send(t, s, "", callBody("pay", "")); a.status != 401 || a.header.Get("Www-Authenticate") != "Bearer" {
		t.Errorf("without a token: %s", a.raw)
	}
	token := middlewaretest.TokenPrefix + "1"
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: s.URL(), HTTPClient: &http.Client{Transport: bearer{s.Client().Transport, &token}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	if _, err := callPay(t, cs); err != nil {
		t.Errorf("while the token is valid: %v", err)
	}
	a := send(t, s, "Authorization: Bearer "+token+"\r\n", callBody("pay", ""))
	if a.status != 401 || !strings.Contains(a.header.Get("Www-Authenticate"), "invalid_token") {
		t.Errorf("after that: %s", a.raw)
	}
	token = middlewaretest.TokenPrefix + "2"
	if _, err := callPay(t, cs); err != nil || s.Effects("pay") != 2 {
		t.Errorf("with the next token: %v, %d effects", errors.Unwrap(err), s.Effects("pay"))
	}
}
