package main

import (
	"strings"
	"testing"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

func TestList(t *testing.T) {
	for kind, o := range kinds() {
		t.Run(kind, func(t *testing.T) {
			s := newServer(t, o)
			s.SetTool(middlewaretest.Tool{Name: "odd\x1b[2J\u202etool"})
			v := runDoctor(t, "-endpoint", s.URL(), "-list", "-safety", "read_*=read_only")
			v.want(t, exitOK, "")
			lines := map[string]string{}
			for line := range strings.Lines(v.stdout) {
				if name, rest, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
					lines[name] = strings.Join(strings.Fields(rest), " ")
				}
			}
			for name, want := range map[string]string{
				"TOOL":         "SAFETY RULE THE SERVER SAYS",
				"read_weather": "read_only -safety read_*=read_only read-only",
				"set_label":    "unsafe default idempotent",
				"pay":          "unsafe default -",
				"odd [2J tool": "unsafe default -",
			} {
				if got := lines[name]; got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if n := s.Effects("pay"); n != 0 || v.stderr != "" {
				t.Errorf("%d effects, stderr %q", n, v.stderr)
			}
		})
	}
}

func TestListEmpty(t *testing.T) {
	s := newServer(t, middlewaretest.Options{})
	if err := s.Select("catalog.empty", nil); err != nil {
		t.Fatal(err)
	}
	v := runDoctor(t, "-endpoint", s.URL(), "-list")
	v.want(t, exitOK, "")
	if !strings.Contains(v.stdout, "The server has no tools.\n") {
		t.Errorf("stdout %q", v.stdout)
	}
}

func TestListPages(t *testing.T) {
	s := newServer(t, middlewaretest.Options{})
	if err := s.Select("catalog.large", nil); err != nil {
		t.Fatal(err)
	}
	v := runDoctor(t, "-endpoint", s.URL(), "-list")
	v.want(t, exitOK, "")
	if n := strings.Count(v.stdout, "\n"); n < 500 {
		t.Errorf("%d lines", n)
	}
}

// TestListFails: the calls are made all the same.
func TestListFails(t *testing.T) {
	s := newServer(t, middlewaretest.Options{})
	s.AlwaysMethod("tools/list", middlewaretest.JSONRPCError(-32603, "no\x1b[2J"))
	v := runDoctor(t, "-endpoint", s.URL(), "-json", "-list", "-call", "read_weather", "-call", "fail")
	v.want(t, exitFailed, "doctor: tools/list failed: ")
	v.want(t, exitFailed, "; 1 of 2 calls did not end in TOOL_SUCCESS")
	if strings.Contains(v.stderr, "\x1b") || len(v.records(t)) != 2 {
		t.Errorf("stdout %q, stderr %q", v.stdout, v.stderr)
	}
	runDoctor(t, "-endpoint", s.URL(), "-list").want(t, exitFailed, "tools/list failed")
}
