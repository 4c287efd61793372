package middlewaretest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

// statuses calls a tool n times.
func statuses(t *testing.T, s *middlewaretest.Server, tool string, n int) []int {
	t.Helper()
	var all []int
	for range n {
		all = append(all, send(t, s, "", callBody(tool, "")).status)
	}
	return all
}

func TestScript(t *testing.T) {
	s := middlewaretest.NewServer(nil)
	defer s.Close()
	s.Script("pay", middlewaretest.Status(503), middlewaretest.Fault{})
	s.Script("pay", middlewaretest.Status(429))
	s.Script(middlewaretest.AnyTool, middlewaretest.Status(500))
	s.Always("pay", middlewaretest.Status(502))
	s.Always(middlewaretest.AnyTool, middlewaretest.Status(504))
	if n := s.Pending("pay"); n != 3 {
		t.Errorf("%d pending", n)
	}
	if got, want := statuses(t, s, "pay", 6), []int{503, 200, 429, 500, 502, 502}; !slices.Equal(got, want) {
		t.Errorf("pay: %v, want %v", got, want)
	}
	if got := statuses(t, s, "send_mail", 1); got[0] != 504 {
		t.Errorf("send_mail: %v", got)
	}
	s.Always("pay", middlewaretest.Fault{})
	if got := statuses(t, s, "pay", 1); got[0] != 504 {
		t.Errorf("pay without a fault of its own: %v", got)
	}
	s.Script("pay", middlewaretest.Status(503))
	s.ClearScripts()
	if got := statuses(t, s, "pay", 1); got[0] != 200 {
		t.Errorf("pay after clearing: %v", got)
	}
	if s.Effects("pay") != 2 || s.Posts("pay") != 8 {
		t.Errorf("%d effects, %d posts", s.Effects("pay"), s.Posts("pay"))
	}
}

func TestScriptPOSTs(t *testing.T) {
	s := middlewaretest.NewServer(nil)
	defer s.Close()
	s.ScriptPOSTs(503, 200, 429)
	for _, c := range []struct {
		method string
		want   int
	}{{"tools/list", 503}, {"tools/call", 200}, {"notifications/initialized", 429}, {"tools/list", 200}} {
		body := `{"jsonrpc":"2.0","id":1,"method":"` + c.method + `","params":{"name":"pay"}}`
		if a := send(t, s, "", body); a.status != c.want {
			t.Errorf("%s: %d, want %d", c.method, a.status, c.want)
		}
	}
}

func TestScriptMethod(t *testing.T) {
	s := middlewaretest.NewServer(&middlewaretest.Options{Version: middlewaretest.Version20251125, StandaloneSSE: true})
	defer s.Close()
	for _, c := range []struct{ method, body string }{
		{"initialize", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`},
		{"server/discover", `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`},
		{"tools/list", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`},
		{"ping", `{"jsonrpc":"2.0","id":1,"method":"ping"}`},
		{"notifications/cancelled", `{"jsonrpc":"2.0","method":"notifications/cancelled"}`},
		{"tools/call", callBody("pay", "")},
	} {
		s.ScriptMethod(c.method, middlewaretest.Status(400), middlewaretest.Late(1))
		s.AlwaysMethod(c.method, middlewaretest.Status(404))
		for _, want := range []int{400, 200, 404} {
			if want == 200 && c.method == "notifications/cancelled" {
				want = 202
			}
			if a := send(t, s, "", c.body); a.status != want {
				t.Errorf("%s: %d, want %d", c.method, a.status, want)
			}
		}
	}
	s.ScriptMethod("GET", middlewaretest.Status(404))
	if a := exchange(t, s, patience, "GET", "", ""); a.status != 404 {
		t.Errorf("GET: %d", a.status)
	}
	s.ScriptMethod("DELETE", middlewaretest.Reset())
	if a := exchange(t, s, patience, "DELETE", "", ""); a.status != 0 || a.ending != reset {
		t.Errorf("DELETE: %d %s", a.status, a.ending)
	}
	if s.Effects("pay") != 1 {
		t.Errorf("%d effects", s.Effects("pay"))
	}
}

// TestScriptMethodBody: a fault of another method than tools/call has a result of
// that method.
func TestScriptMethodBody(t *testing.T) {
	s := middlewaretest.NewServer(nil)
	defer s.Close()
	s.ScriptMethod("ping", middlewaretest.Fault{Name: "f", Status: 500, Body: "%response%", Execute: middlewaretest.Before})
	a := send(t, s, "", `{"jsonrpc":"2.0","id":"a","method":"ping"}`)
	if got, want := string(a.body), `{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete"}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestParallelScript: of many calls at once, each takes one fault.
func TestParallelScript(t *testing.T) {
	s := middlewaretest.NewServer(nil)
	defer s.Close()
	const calls, faults = 40, 15
	for range faults {
		s.Script("pay", middlewaretest.Status(503))
	}
	got := make(chan int)
	for range calls {
		go func() {
			resp, err := post(t.Context(), s, callBody("pay", ""), false)
			if err != nil {
				got <- 0
				return
			}
			resp.Body.Close()
			got <- resp.StatusCode
		}()
	}
	n := map[int]int{}
	for range calls {
		n[<-got]++
	}
	if n[503] != faults || n[200] != calls-faults || s.Effects("pay") != calls-faults {
		t.Errorf("%v, %d effects", n, s.Effects("pay"))
	}
}

func TestUnreadableRequests(t *testing.T) {
	s := middlewaretest.NewServer(&middlewaretest.Options{MaxRequest: 1000})
	defer s.Close()
	for body, want := range map[string]struct {
		status int
		text   string
	}{
		"{":                              {400, "-32700"},
		"[]":                             {400, "-32600"},
		`{"jsonrpc":"2.0","id":1}`:       {202, ""},
		`7`:                              {400, "-32700"},
		`{"id":1,"method":"no/such"}`:    {404, "-32601"},
		`{"id":1,"method":"initialize"}`: {400, "-32022"},
		strings.Repeat(" ", 2000):        {413, "too large"},
		`{"id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01"}}}`: {400, "-32022"},
	} {
		if a := send(t, s, "", body); a.status != want.status || !strings.Contains(string(a.body), want.text) {
			t.Errorf("%.40s: %s", body, a.raw)
		}
	}
	if a := exchange(t, s, patience, "PUT", "", ""); a.status != 405 {
		t.Errorf("PUT: %d", a.status)
	}
}
