package main

import (
	"bytes"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/middleware/middlewaretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newServer has the tools of the referee's servers.
func newServer(t *testing.T) *middlewaretest.Server {
	s := middlewaretest.NewServer(&middlewaretest.Options{
		Version: middlewaretest.Version20251125, Sessions: true, Stream: true, EventIDs: true, StandaloneSSE: true,
		Tools: []middlewaretest.Tool{
			{Name: "add_numbers"}, {Name: "test_reconnection"},
			{Name: "test_client_elicitation_defaults", Ask: "As proposed?", RefusalIsFine: true},
		},
	})
	t.Cleanup(s.Close)
	cut, ok := middlewaretest.FaultNamed("sse-resume-delivers-after-end")
	if !ok {
		t.Fatal("no such fault")
	}
	s.Always("test_reconnection", cut)
	return s
}

// Each scenario comes to the same with and without surecall, at a server of ours.
func TestScenarios(t *testing.T) {
	for name, want := range map[string]string{
		"initialize":                          " tools\n",
		"tools_call":                          "add_numbers done",
		"sse-retry":                           "test_reconnection done",
		"elicitation-sep1034-client-defaults": "test_client_elicitation_defaults: ",
	} {
		var told [2]string
		for i, args := range [][]string{{"-bare"}, {}} {
			s := newServer(t)
			var out, errs bytes.Buffer
			if status := run(t.Context(), append(args, s.URL()), name, &out, &errs); status != 0 {
				t.Errorf("%s %v: status %d: %s", name, args, status, &errs)
			}
			if told[i] = out.String(); !strings.Contains(told[i], want) {
				t.Errorf("%s %v: %s", name, args, told[i])
			}
			checkTraffic(t, s, name, len(args) == 0)
		}
		if told[0] != told[1] {
			t.Errorf("%s: bare %swrapped %s", name, told[0], told[1])
		}
	}
}

// checkTraffic checks that the scenario was played, by a client that is wrapped or not.
func checkTraffic(t *testing.T, s *middlewaretest.Server, name string, wrapped bool) {
	t.Helper()
	var resumed, keys int
	for _, e := range s.Entries() {
		if e.HTTPMethod == "GET" && e.Header.Get("Last-Event-Id") != "" {
			resumed++
		}
		if e.Meta[idempotency.MetaKey] != nil {
			keys++
		}
	}
	asked := s.Counts().Elicitations
	if (resumed == 1) != (name == "sse-retry") || (asked == 1) != (name == "elicitation-sep1034-client-defaults") {
		t.Errorf("%s, wrapped %t: %d resumptions, %d questions", name, wrapped, resumed, asked)
	}
	if (keys == 1) != (wrapped && name != "initialize") {
		t.Errorf("%s, wrapped %t: %d calls with keys", name, wrapped, keys)
	}
}

func TestWrongCalls(t *testing.T) {
	s := newServer(t)
	s.Always("add_numbers", middlewaretest.Status(403))
	for _, c := range []struct {
		scenario string
		args     []string
		status   int
		says     string
	}{
		{"no-such", []string{s.URL()}, 2, `"no-such"`},
		{"initialize", nil, 2, "not one URL"},
		{"initialize", []string{"-wrong", s.URL()}, 2, "-wrong"},
		{"initialize", []string{"http://127.0.0.1:1/mcp"}, 1, "connecting"},
		{"tools_call", []string{s.URL()}, 1, "HTTP_ERROR 403"},
		{"tools_call", []string{"-bare", s.URL()}, 1, "Forbidden"},
	} {
		var out, errs bytes.Buffer
		if status := run(t.Context(), c.args, c.scenario, &out, &errs); status != c.status || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%s %q: status %d: %s", c.scenario, c.args, status, &errs)
		}
	}
}
