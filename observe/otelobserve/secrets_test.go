package otelobserve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe/otelobserve"
)

// What a server, a network error or an argument holds reaches neither a span nor a
// label: nothing of it where it is no JSON-RPC message, and of that no credential.
func TestSecretsReachNoSpanAndNoLabel(t *testing.T) {
	const secret = "hunter2hunter2"
	planted := []string{
		"Authorization: Bearer " + secret, `{"api_key":"` + secret + `"}`, "https://u:" + secret + "@example.com/?token=" + secret,
		"password=" + secret, "Set-Cookie: sid=" + secret, `{\"token\": \"` + secret + `\"}`,
	}
	for version, so := range servers {
		r := newRig(t, so, otelobserve.Options{})
		for _, words := range planted {
			quoted, _ := json.Marshal(words)
			for _, f := range []middlewaretest.Fault{
				middlewaretest.JSONRPCError(-32603, words),
				middlewaretest.StatusError(500, -32000, words),
				middlewaretest.Body("page", "text/html", "<p>"+words),
				middlewaretest.Body("json", "application/json", `{"error":`+string(quoted)+`}`),
				middlewaretest.ToolError(words),
				{Name: "header", Status: http.StatusBadGateway, Header: http.Header{"X-Echo": {words}, "Content-Type": {"text/plain; " + secret}}, Body: words},
			} {
				r.server.Script("pay", f)
				_, _ = r.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"note": words, "fault": f.Name}})
			}
		}
		r.spare(version, secret, 6*len(planted))
	}
	// A dial error names the address, credentials included.
	r := newRig(t, servers["2026-07-28"], otelobserve.Options{})
	observer, err := otelobserve.New(&otelobserve.Options{TracerProvider: r.tracer})
	if err != nil {
		t.Fatal(err)
	}
	url := strings.Replace(r.server.URL(), "http://", "http://user:"+secret+"@", 1) + "?token=" + secret
	session := connect(t, url, middleware.New(&middleware.Options{Observer: observer}), nil)
	r.server.Close()
	_, _ = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"})
	r.spare("dial", secret, 1)
}

// spare checks that nothing that was told holds the secret, and that calls were told.
func (r *rig) spare(name, secret string, calls int) {
	r.t.Helper()
	if n := len(r.named("tools/call pay")); n < calls {
		r.t.Errorf("%s: %d spans of %d calls", name, n, calls)
	}
	for _, s := range tracetest.SpanStubsFromReadOnlySpans(r.spans.Ended()) {
		text, err := json.Marshal(s)
		if err != nil {
			r.t.Fatal(err)
		}
		if bytes.Contains(text, []byte(secret)) {
			r.t.Errorf("%s: %s", name, text)
		}
	}
	var rm metricdata.ResourceMetrics
	if err := r.reader.Collect(context.Background(), &rm); err != nil {
		r.t.Fatal(err)
	}
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			for _, p := range r.points(m.Name) {
				for k, v := range p.attrs {
					if strings.Contains(v, secret) {
						r.t.Errorf("%s: %s: %s=%s", name, m.Name, k, v)
					}
				}
			}
		}
	}
}
