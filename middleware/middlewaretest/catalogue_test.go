package middlewaretest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

var (
	outcomes = []string{
		"TOOL_SUCCESS", "TOOL_ERROR", "INPUT_REQUIRED", "JSONRPC_ERROR", "MALFORMED_JSON", "INVALID_ENVELOPE",
		"INVALID_TOOL_RESULT", "HTTP_ERROR", "NETWORK_ERROR", "STREAM_INCOMPLETE", "UNEXPECTED_CONTENT", "REDIRECTED",
		"SESSION_LOST", "RESULT_TOO_LARGE", "TIMEOUT",
	}
	deliveries = []string{"not_sent", "refused", "answered", "unknown"}
)

func TestCatalogue(t *testing.T) {
	seen := map[string]bool{}
	met := map[string]bool{}
	for _, f := range middlewaretest.Faults() {
		if f.Name == "" || seen[f.Name] {
			t.Errorf("name %q is empty or twice there", f.Name)
		}
		seen[f.Name] = true
		for _, e := range []*middlewaretest.Expectation{&f.Expectation, f.Legacy} {
			if e == nil {
				continue
			}
			met[e.Outcome] = true
			if !slices.Contains(outcomes, e.Outcome) || !slices.Contains(deliveries, e.Delivery) {
				t.Errorf("%s: expectation %+v is not in the vocabulary", f.Name, *e)
			}
		}
		if got, ok := middlewaretest.FaultNamed(f.Name); !ok || got.Name != f.Name {
			t.Errorf("%s is not found by its name", f.Name)
		}
	}
	for _, o := range outcomes {
		if !met[o] {
			t.Errorf("no fault has outcome %s", o)
		}
	}
	if _, ok := middlewaretest.FaultNamed("no such fault"); ok {
		t.Error("a fault that is none was found")
	}
}

// TestCatalogueIsHonest: no fault that says "refused" or "not_sent" has run the
// tool, but the one whose kind is to lie about it.
func TestCatalogueIsHonest(t *testing.T) {
	for _, f := range middlewaretest.Faults() {
		refused := f.Delivery == "refused" || f.Delivery == "not_sent"
		if refused && f.Runs() && f.Name != "session-forgotten-executed" {
			t.Errorf("%s runs the tool, and expects %s", f.Name, f.Delivery)
		}
	}
}

func TestApplies(t *testing.T) {
	legacy := &middlewaretest.Options{Version: middlewaretest.Version20251125}
	sessions := &middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true}
	h2 := &middlewaretest.Options{HTTP2: true}
	for _, c := range []struct {
		fault string
		opts  *middlewaretest.Options
		want  bool
	}{
		{"reset", nil, true},
		{"session-forgotten", nil, false},
		{"session-forgotten", legacy, false},
		{"session-forgotten", sessions, true},
		{"session-forgotten", &middlewaretest.Options{Sessions: true}, false}, // 2026-07-28 has none
		{"rounds-question", nil, true},
		{"rounds-question", legacy, false},
		{"rounds-on-2025-11-25", legacy, true},
		{"rounds-on-2025-11-25", nil, false},
		{"h2-refused-stream", nil, false},
		{"h2-refused-stream", h2, true},
	} {
		f, ok := middlewaretest.FaultNamed(c.fault)
		if !ok || f.Applies(c.opts) != c.want {
			t.Errorf("%s on %+v: applies %v, want %v", c.fault, c.opts, f.Applies(c.opts), c.want)
		}
	}
}

func TestExpected(t *testing.T) {
	legacy := &middlewaretest.Options{Version: middlewaretest.Version20251125}
	sessions := &middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true}
	for _, c := range []struct {
		fault string
		opts  *middlewaretest.Options
		want  string
	}{
		{"status-404", nil, "HTTP_ERROR"},
		{"status-404", legacy, "HTTP_ERROR"},
		{"status-404", sessions, "HTTP_ERROR"},
		{"result-type-unknown", nil, "INVALID_TOOL_RESULT"},
		{"result-type-unknown", sessions, "TOOL_SUCCESS"},
		{"sse-resume-delivers", nil, "STREAM_INCOMPLETE"},
		{"sse-resume-delivers", legacy, "TOOL_SUCCESS"},
	} {
		f, _ := middlewaretest.FaultNamed(c.fault)
		if got := f.Expected(c.opts).Outcome; got != c.want {
			t.Errorf("%s on %+v: %s, want %s", c.fault, c.opts, got, c.want)
		}
	}
}

// TestWords: a template's words are replaced, and everything else stays.
func TestWords(t *testing.T) {
	s := middlewaretest.NewServer(nil)
	defer s.Close()
	for template, want := range map[string]string{
		"%id% %nextid% %halfid% %textid%":      `7 8 7.5 "7"`,
		"100% of %none% and %":                 "100% of %none% and %",
		"%token%":                              "null",
		"[%fill%]":                             "[xxx]",
		"%%id%%":                               "%7%",
		"%result%":                             `{"resultType":"complete","content":[{"type":"text","text":"made up"}]}`,
		"%here%|%elsewhere%":                   s.URL() + "|" + strings.Replace(s.URL(), "127.0.0.1", "localhost", 1),
		`{"resultType":"x","state":"%state%"}`: `{"resultType":"x","state":"ask:1"}`,
	} {
		s.Script("pay", middlewaretest.Fault{Name: "template", Status: 200, Body: template, Size: 3})
		if got := string(send(t, s, "", callBody("pay", "")).body); got != want {
			t.Errorf("%s became %s, want %s", template, got, want)
		}
	}
}
