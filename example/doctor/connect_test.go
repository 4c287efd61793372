package main

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

func TestNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := "http://" + l.Addr().String() + "/mcp"
	l.Close()
	v := runDoctor(t, "-endpoint", free+"?key=hidden", "-call", "pay")
	v.want(t, exitUnrun, "cannot connect to "+free+": NETWORK_ERROR: the connection failed: ")
	if v.stdout != "" || strings.Contains(v.stderr, "hidden") || strings.Count(v.stderr, "\n") != 1 {
		t.Errorf("stdout %q, stderr %q", v.stdout, v.stderr)
	}
}

func TestHandshakeHangs(t *testing.T) {
	s := newServer(t, middlewaretest.Options{})
	if err := s.Select("timeout.init_hang", nil); err != nil {
		t.Fatal(err)
	}
	v := runDoctor(t, "-endpoint", s.URL(), "-timeout", "150ms", "-list")
	v.want(t, exitUnrun, "no answer within 150ms")
}

func TestInterruptedHandshake(t *testing.T) {
	s := newServer(t, middlewaretest.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	runWith(ctx, strings.NewReader(""), "-endpoint", s.URL(), "-list").want(t, exitUnrun, "interrupted")
}

func TestNotMCP(t *testing.T) {
	s := newServer(t, middlewaretest.Options{Authorize: func(w http.ResponseWriter, r *http.Request) bool {
		http.Error(w, "\x1b[31mno such page", http.StatusNotFound)
		return false
	}})
	v := runDoctor(t, "-endpoint", s.URL(), "-list")
	v.want(t, exitUnrun, "cannot connect to ")
	if strings.Contains(v.stderr, "\x1b") {
		t.Errorf("stderr %q", v.stderr)
	}
}

// TestWhatWasTriedFirst: the failure that matters is not hidden by the one after it.
func TestWhatWasTriedFirst(t *testing.T) {
	s := newServer(t, middlewaretest.Options{})
	s.AlwaysMethod("server/discover", middlewaretest.Status(503))
	runDoctor(t, "-endpoint", s.URL(), "-list").want(t, exitUnrun, "server/discover: ")
	runDoctor(t, "-endpoint", s.URL(), "-list").want(t, exitUnrun, "Service Unavailable; initialize: ")
}

func TestProtocolFlag(t *testing.T) {
	s := newServer(t, middlewaretest.Options{Version: middlewaretest.Version20251125})
	args := []string{"-endpoint", s.URL(), "-json", "-call", "read_weather"}
	runDoctor(t, append(args, "-protocol", "2025-11-25")...).want(t, exitOK, "")
	if c := s.Counts(); c.Discovers != 0 || c.Initializes != 1 {
		t.Errorf("counts %+v", c)
	}
	runDoctor(t, args...).want(t, exitOK, "")
	if c := s.Counts(); c.Discovers != 1 || c.Initializes != 2 {
		t.Errorf("counts %+v", c)
	}
}

func TestHeaderFlag(t *testing.T) {
	for kind, o := range kinds() {
		t.Run(kind, func(t *testing.T) {
			s := newServer(t, o)
			v := runDoctor(t, "-endpoint", s.URL(), "-header", "Authorization: Bearer hidden-token", "-list", "-call", "pay")
			v.want(t, exitOK, "")
			for _, e := range s.Entries() {
				if e.Header.Get("Authorization") != "Bearer hidden-token" {
					t.Errorf("%s %s without the header", e.HTTPMethod, e.Method)
				}
			}
			if strings.Contains(v.stdout+v.stderr, "hidden-token") {
				t.Error("the value is shown")
			}
		})
	}
}
