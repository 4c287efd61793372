package middlewaretest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

// FuzzRequest: no request makes the server panic, and what it received is booked.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		callBody("pay", ""), callBody("ask", `"requestState":"held:9:9",`), callBody("big", `"arguments":{"size":-1},`),
		callBody("route", `"arguments":{"region":[{}]},`), `{"id":1,"method":"tools/list","params":{"cursor":"-5"}}`, `{"id":{},"result":1}`,
		`{"id":null,"method":"tools/call","params":null}`, "[]", "\xff",
	} {
		f.Add(seed, "eu", "s1_0")
	}
	f.Fuzz(func(t *testing.T, body, header, event string) {
		if strings.Contains(body, "listen") || strings.Contains(body, "ms") || strings.Contains(body, "big") {
			return // may take long, by design
		}
		for _, o := range bothVersions() {
			o.Sessions, o.EventIDs = false, true
			s := middlewaretest.NewUnstarted(&o)
			s.SetTool(middlewaretest.Tool{Name: "route", InputSchema: []byte(`{"properties":{"region":{"x-mcp-header":"Region"}}}`)})
			for _, method := range []string{http.MethodPost, http.MethodGet} {
				r := httptest.NewRequest(method, "/mcp", strings.NewReader(body))
				r.Header.Set("Mcp-Param-Region", header)
				r.Header.Set("Idempotency-Key", header)
				r.Header.Set("Last-Event-ID", event)
				w := httptest.NewRecorder()
				s.Handler().ServeHTTP(w, r)
			}
			if len(s.Entries()) != 2 {
				t.Errorf("%d entries", len(s.Entries()))
			}
			s.Close()
		}
	})
}
