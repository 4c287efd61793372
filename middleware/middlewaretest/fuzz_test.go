package middlewaretest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

// FuzzRequest: no request makes the server panic, and what it received is booked.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		callBody("pay", ""), callBody("ask", `"requestState":"held:9:9",`), callBody("route", `"arguments":{"region":[{}]},`),
		`{"id":1,"method":"tools/list","params":{"cursor":"-5"}}`, `{"id":{},"result":1}`, `{"id":1,"method":"subscriptions/listen"}`,
		`{"id":null,"method":"tools/call","params":null}`, "[]", "\xff",
	} {
		f.Add(seed, "eu", "s1_0")
	}
	over, cancel := context.WithCancel(f.Context())
	cancel() // so that what would hang ends
	f.Fuzz(func(t *testing.T, body, header, event string) {
		for _, o := range bothVersions() {
			o.Sessions, o.EventIDs = false, true
			s := middlewaretest.NewUnstarted(&o)
			s.SetTool(middlewaretest.Tool{Name: "slow"})
			s.SetTool(middlewaretest.Tool{Name: "big"})
			s.SetTool(middlewaretest.Tool{Name: "route", InputSchema: []byte(`{"properties":{"region":{"x-mcp-header":"Region"}}}`)})
			for _, method := range []string{http.MethodPost, http.MethodGet} {
				r := httptest.NewRequestWithContext(over, method, "/mcp", strings.NewReader(body))
				r.Header.Set("Mcp-Param-Region", header)
				r.Header.Set("Idempotency-Key", header)
				r.Header.Set("Last-Event-ID", event)
				serve(s, r)
			}
			if len(s.Entries()) != 2 {
				t.Errorf("%d entries", len(s.Entries()))
			}
			s.Close()
		}
	})
}

// serve lets pass the one panic that net/http defines.
func serve(s *middlewaretest.Server, r *http.Request) {
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler {
			panic(p)
		}
	}()
	s.Handler().ServeHTTP(httptest.NewRecorder(), r)
}
