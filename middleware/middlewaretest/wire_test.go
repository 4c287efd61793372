package middlewaretest_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

var update = flag.Bool("update", false, "write testdata anew")

// TestWire: every fault of the catalogue, byte for byte as testdata shows it, and
// with the effects that it declares.
func TestWire(t *testing.T) {
	for _, c := range []struct {
		file string
		opts middlewaretest.Options
	}{
		{"wire-2026-07-28.txt", middlewaretest.Options{}},
		{"wire-2025-11-25-sessions.txt", middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true}},
	} {
		t.Run(c.file, func(t *testing.T) {
			faults := middlewaretest.Faults()
			got := make([]string, len(faults))
			t.Run("faults", func(t *testing.T) {
				for i, f := range faults {
					if f.Applies(&c.opts) && f.Repeat == 0 {
						t.Run(f.Name, func(t *testing.T) {
							t.Parallel()
							got[i] = show(t, f, c.opts)
						})
					}
				}
			})
			golden(t, c.file, strings.Join(got, ""))
		})
	}
}

func show(t *testing.T, f middlewaretest.Fault, o middlewaretest.Options) string {
	t.Helper()
	s := middlewaretest.NewServer(&o)
	defer s.Close()
	const tool = "pay"
	s.Script(tool, f)
	var header, more string
	if o.Sessions {
		header = legacySession(t, s)
	}
	if f.Round > 1 {
		send(t, s, header, callBody(tool, ""))
		more = `"requestState":"held:1:1","inputResponses":{"approval":{"action":"accept","content":{"approve":true}}},`
	}
	wait := patience
	if f.Ending == middlewaretest.EndSilent {
		wait = quiet
	}
	a := sendAndWait(t, s, wait, header, callBody(tool, more))

	entries := s.Entries()
	e := entries[len(entries)-1]
	if e.Fault != f.Name || e.Status != a.status {
		t.Errorf("%s: entry has fault %q and status %d, wire has %d", f.Name, e.Fault, e.Status, a.status)
	}
	effects := 0
	if f.Runs() {
		effects = 1
	}
	eventually(t, func() bool { return s.Effects(tool) >= effects })
	if s.Effects(tool) != effects {
		t.Errorf("%s: %d effects, want %d", f.Name, s.Effects(tool), effects)
	}
	if want := map[middlewaretest.Ending]string{middlewaretest.EndComplete: complete, middlewaretest.EndSilent: silent, middlewaretest.EndReset: reset, middlewaretest.EndClose: closed}[f.Ending]; a.ending != want && !f.Whole {
		t.Errorf("%s: ended %s, want %s", f.Name, a.ending, want)
	}
	again(t, s, f, o)
	want := f.Expected(&o)
	return fmt.Sprintf("=== %s: runs %v; %s, %s; then %s\n%s\n", f.Name, f.Execute, want.Outcome, want.Delivery, a.ending, a.printable(s))
}

// again: the fault has struck once, and the server is well.
func again(t *testing.T, s *middlewaretest.Server, f middlewaretest.Fault, o middlewaretest.Options) {
	t.Helper()
	header := ""
	if o.Sessions {
		header = legacySession(t, s)
	}
	if a := send(t, s, header, callBody("read_weather", "")); a.status != 200 || a.ending != complete || !strings.Contains(string(a.body), "21 C") {
		t.Errorf("%s: afterwards: %s", f.Name, a.raw)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g, w := strings.Split(got, "\n=== "), strings.Split(string(want), "\n=== ")
	for i := range max(len(g), len(w)) {
		switch {
		case i >= len(g):
			t.Fatalf("%s: missing: %s", name, w[i])
		case i >= len(w):
			t.Fatalf("%s: unexpected: %s", name, g[i])
		case g[i] != w[i]:
			t.Fatalf("%s:\ngot  %s\nwant %s", name, g[i], w[i])
		}
	}
}
