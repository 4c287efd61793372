package middlewaretest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

type ctx = context.Context

func TestSessions(t *testing.T) {
	s := middlewaretest.NewServer(&middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true})
	defer s.Close()
	if a := send(t, s, "", callBody("pay", "")); a.status != 400 {
		t.Errorf("without a session: %d", a.status)
	}
	if a := send(t, s, "Mcp-Session-Id: none\r\n", callBody("pay", "")); a.status != 404 {
		t.Errorf("unknown session: %d", a.status)
	}
	one, two := legacySession(t, s), legacySession(t, s)
	if a := exchange(t, s, patience, "DELETE", one, ""); a.status != 204 || s.Sessions() != 1 {
		t.Errorf("DELETE: %d, %d sessions", a.status, s.Sessions())
	}
	for session, want := range map[string]int{one: 404, two: 200} {
		if a := send(t, s, session, callBody("pay", "")); a.status != want {
			t.Errorf("status %d, want %d", a.status, want)
		}
	}
	s.ForgetSessions()
	if a := send(t, s, two, callBody("pay", "")); a.status != 404 || s.Effects("pay") != 1 {
		t.Errorf("forgotten session: %d, %d effects", a.status, s.Effects("pay"))
	}
}

func TestUnknownSession(t *testing.T) {
	shape := middlewaretest.StatusError(404, -32001, "session gone")
	s := middlewaretest.NewServer(&middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true, UnknownSession: &shape})
	defer s.Close()
	if a := send(t, s, "Mcp-Session-Id: none\r\n", callBody("pay", "")); a.status != 404 || !strings.Contains(string(a.body), "-32001") {
		t.Errorf("%s", a.raw)
	}
}

// TestForgottenSession: what the bare official client makes of it.
func TestForgottenSession(t *testing.T) {
	s := middlewaretest.NewServer(&middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true})
	defer s.Close()
	cs := connect(t, s, nil)
	f, _ := middlewaretest.FaultNamed("session-forgotten-executed")
	s.Script("pay", f)
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"}); !errors.Is(err, mcp.ErrSessionMissing) {
		t.Errorf("error %v", err)
	}
	if s.Sessions() != 0 || s.Effects("pay") != 1 {
		t.Errorf("%d sessions, %d effects", s.Sessions(), s.Effects("pay"))
	}
	if _, err := connect(t, s, nil).CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"}); err != nil {
		t.Errorf("new session: %v", err)
	}
}

func TestHandshake(t *testing.T) {
	s := middlewaretest.NewServer(&middlewaretest.Options{Version: middlewaretest.Version20251125})
	defer s.Close()
	for _, c := range []struct {
		handshake middlewaretest.Handshake
		asked     string
		name      string
		version   string
	}{
		{middlewaretest.Handshake{}, "2025-06-18", "middlewaretest", "2025-06-18"},
		{middlewaretest.Handshake{}, "2099-01-01", "middlewaretest", "2025-11-25"},
		{middlewaretest.Handshake{Name: "other", ProtocolVersion: "2025-03-26"}, "2025-11-25", "other", "2025-03-26"},
	} {
		s.SetHandshake(c.handshake)
		a := send(t, s, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+c.asked+`"}}`)
		if body := string(a.body); !strings.Contains(body, `"name":"`+c.name+`"`) || !strings.Contains(body, `"protocolVersion":"`+c.version+`"`) {
			t.Errorf("%+v: %s", c, body)
		}
	}
}

// TestHeaders: a 2026-07-28 request whose headers contradict its body.
func TestHeaders(t *testing.T) {
	tool := middlewaretest.Tool{Name: "route", InputSchema: []byte(`{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}`)}
	s := middlewaretest.NewServer(&middlewaretest.Options{Tools: []middlewaretest.Tool{tool}})
	defer s.Close()
	for _, c := range []struct {
		header, args string
		status       int
	}{
		{"", `{}`, 200},
		{"Mcp-Method: tools/call\r\nMcp-Name: route\r\n", `{}`, 200},
		{"Mcp-Method: tools/list\r\n", `{}`, 400},
		{"Mcp-Name: pay\r\n", `{}`, 400},
		{"Mcp-Protocol-Version: 2025-11-25\r\n", `{}`, 400},
		{"", `{"region":"eu"}`, 400},
		{"Mcp-Param-Region: us\r\n", `{"region":"eu"}`, 400},
		{"Mcp-Param-Region: eu\r\n", `{"region":"eu"}`, 200},
		{"Mcp-Param-Region: =?base64?ZXU=?=\r\n", `{"region":"eu"}`, 200},
		{"Mcp-Param-Region: =?base64?!?=\r\n", `{"region":"eu"}`, 400},
		{"Mcp-Param-Region: eu\r\n", `{}`, 400},
		{"Mcp-Param-N: 7\r\n", `{"deep":{"n":7}}`, 200},
		{"Mcp-Param-N: 8\r\n", `{"deep":{"n":7}}`, 400},
	} {
		a := send(t, s, c.header, callBody("route", `"arguments":`+c.args+`,`))
		if a.status != c.status || (c.status == 400) != strings.Contains(string(a.body), `"id":7,"error":{"code":-32020`) {
			t.Errorf("%q %s: %s", c.header, c.args, a.raw)
		}
	}
}

// TestHeadersChange: the official client sends what its list says, and the server
// refuses it when the tool has changed since.
func TestHeadersChange(t *testing.T) {
	tool := func(header string) middlewaretest.Tool {
		return middlewaretest.Tool{Name: "route", InputSchema: []byte(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"` + header + `"}}}`)}
	}
	s := middlewaretest.NewServer(&middlewaretest.Options{Tools: []middlewaretest.Tool{tool("Old")}, ListTTL: 1e12})
	defer s.Close()
	cs := connect(t, s, nil)
	if _, err := cs.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	call := &mcp.CallToolParams{Name: "route", Arguments: map[string]any{"region": "eu"}}
	if _, err := cs.CallTool(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	s.SetTool(tool("New"))
	if _, err := cs.CallTool(t.Context(), call); err == nil || s.Effects("route") != 1 {
		t.Errorf("error %v, %d effects", err, s.Effects("route"))
	}
}
