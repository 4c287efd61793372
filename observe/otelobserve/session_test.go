package otelobserve

import (
	"errors"
	"fmt"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestSessionErrors(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{fmt.Errorf("x: %w", mcp.ErrSessionMissing), "SESSION_LOST"},
		{errors.New("the words of a server"), "_OTHER"},
	} {
		if got := sessionError(tt.err); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
	}
}

func TestEndpoints(t *testing.T) {
	for raw, want := range map[string]endpoint{
		"https://example.com/mcp":     {"example.com", 443},
		"http://[::1]:8080/mcp":       {"::1", 8080},
		"http://example.com":          {"example.com", 80},
		"":                            {},
		"http://exa mple.com:99999/x": {},
	} {
		if got := endpointOf(raw); got != want {
			t.Errorf("%q: %v, want %v", raw, got, want)
		}
	}
	if attrs := new(endpoint).appendVersion(new(endpoint).append(nil), "1.1"); len(attrs) != 0 {
		t.Errorf("without HTTP: %v", attrs)
	}
}

// An id is told as text, whatever type it has.
func TestRequestIDs(t *testing.T) {
	for raw, want := range map[string]string{`7`: "7", `"req-7"`: "req-7", `"a\"b"`: `a"b`, `null`: "", ``: ""} {
		if got := idText([]byte(raw)); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}
