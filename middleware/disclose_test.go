package middleware_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
)

// TestDisclosure: arguments and results are shown for the tools that were opted in,
// through the host's redactor and ours, and for no others.
func TestDisclosure(t *testing.T) {
	r := newRig(t, middlewaretest.Options{})
	r.stack = middleware.New(&middleware.Options{
		OnRecord: checked(t, func(_ context.Context, rec *observe.Record) { r.records = append(r.records, rec) }),
		Disclose: []middleware.Disclosure{
			{Tool: "read_*", Arguments: func(raw json.RawMessage) string {
				return strings.ReplaceAll(string(raw), "umbrella", "thing") + " password=hunter2hunter2"
			}},
			{Tool: "big", Result: func(res *mcp.CallToolResult) string {
				return strings.Repeat(res.Content[0].(*mcp.TextContent).Text, 10)
			}},
			{Tool: "pay", Arguments: func(json.RawMessage) string { panic("a redactor") }},
			{Tool: "set_label"},
			{Result: func(*mcp.CallToolResult) string { return "the rest" }},
		},
	})
	r.session = r.connect(t, r.stack)
	text := func(s *string) string {
		if s == nil {
			return "null"
		}
		return *s
	}
	for tool, want := range map[string][2]string{
		"read_weather": {`{"note":"blue thing"} password=[redacted]`, "null"},
		"pay":          {"null", "null"},
		"set_label":    {"null", "null"},
		"fail":         {"null", "the rest"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, rec, err := r.callIn(ctx, tool, map[string]any{"note": "blue umbrella"})
		cancel()
		if err != nil || text(rec.Arguments) != want[0] || text(rec.Result) != want[1] {
			t.Errorf("%s: arguments %s, result %s (%v)", tool, text(rec.Arguments), text(rec.Result), err)
		}
	}
	if _, rec, err := r.callIn(t.Context(), "big", map[string]any{"size": 5000}); err != nil || len(text(rec.Result)) != 4096 || rec.Arguments != nil {
		t.Errorf("big: %d bytes of result (%v)", len(text(rec.Result)), err)
	}
}

// TestHandlerThatPanics: the call has had its effect, and keeps its result.
func TestHandlerThatPanics(t *testing.T) {
	r := newRig(t, middlewaretest.Options{})
	r.session = r.connect(t, middleware.New(&middleware.Options{OnRecord: func(context.Context, *observe.Record) { panic("a handler") }}))
	res, err := r.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"})
	if err != nil || res.IsError || r.server.Effects("pay") != 1 {
		t.Errorf("%v, %v, %d effects", res, err, r.server.Effects("pay"))
	}
}
