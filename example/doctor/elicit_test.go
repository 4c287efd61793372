package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

// tty is a stdin that passes for a terminal.
type tty struct{ io.Reader }

func (tty) Stat() (os.FileInfo, error) { return os.Stat("/dev/zero") }

func TestElicit(t *testing.T) {
	for kind, o := range kinds() {
		if o.Version == middlewaretest.Version20251125 && !o.Sessions {
			continue // nothing to ask by
		}
		o.Tools = []middlewaretest.Tool{
			{Name: "approve", Ask: "Go\x1b[2J ahead?"},
			{Name: "close", Ask: "Why?", AskField: "reason"},
			{Name: "sign_in", Ask: "Please sign in.", AskURL: "https://example.com/sign-in?state=1"},
		}
		for _, tc := range []struct {
			how, tool, typed string
			outcome, says    string
		}{
			{elicitAccept, "approve", "", "TOOL_SUCCESS", `asks "Go [2J ahead?": accepted with {"approve":true}`},
			{elicitAccept, "close", "", "TOOL_ERROR", `accepted with {"reason":""}`},
			{elicitAccept, "sign_in", "", "TOOL_SUCCESS", `"Please sign in." at https://example.com/sign-in?state=1: accepted, without opening`},
			{elicitDecline, "approve", "", "TOOL_ERROR", ": declined\n"},
			{elicitDecline, "sign_in", "", "TOOL_ERROR", ": declined\n"},
			{elicitAsk, "approve", "", "TOOL_ERROR", "declined, as there is no terminal"},
			{elicitAsk, "approve", "y\n\n", "TOOL_SUCCESS", "approve (boolean, required) [true]: "},
			{elicitAsk, "approve", "yes\nmaybe\nno\n", "TOOL_ERROR", "yes or no, please"},
			{elicitAsk, "approve", "n\n", "TOOL_ERROR", "answered decline"},
			{elicitAsk, "approve", "what?\n", "TOOL_ERROR", "answered cancel"},
			{elicitAsk, "close", "y\nlunch\n", "TOOL_SUCCESS", "reason (string, required): "},
			{elicitAsk, "close", "y\n", "TOOL_ERROR", "answered cancel"},
			{elicitAsk, "sign_in", "y\n", "TOOL_SUCCESS", "Open it yourself"},
		} {
			t.Run(kind+"/"+tc.how+"/"+tc.tool+"/"+tc.typed, func(t *testing.T) {
				s := newServer(t, o)
				stdin := io.Reader(strings.NewReader(""))
				if tc.typed != "" {
					stdin = tty{strings.NewReader(tc.typed)}
				}
				v := runWith(t.Context(), stdin, "-endpoint", s.URL(), "-json", "-elicit", tc.how, "-call", tc.tool)
				if got, want := v.outcomes(t), tc.tool+" "+tc.outcome+" answered"; got != want {
					t.Errorf("outcomes %s, want %s", got, want)
				}
				if !strings.Contains(v.stderr, tc.says) || strings.Contains(v.stderr, "\x1b") {
					t.Errorf("stderr lacks %q:\n%s", tc.says, v.stderr)
				}
			})
		}
	}
}

// TestAskWithoutAnswer: a person who says nothing does not hold a call beyond its
// time.
func TestAskWithoutAnswer(t *testing.T) {
	t.Parallel()
	s := newServer(t, middlewaretest.Options{})
	in, typed := io.Pipe()
	defer typed.Close()
	v := runWith(t.Context(), tty{in}, "-endpoint", s.URL(), "-json", "-timeout", "1s", "-call", "ask", "-call", "read_weather")
	v.want(t, exitFailed, "1 of 2 calls")
	if got, want := v.outcomes(t), "ask TIMEOUT answered; read_weather TOOL_SUCCESS answered"; got != want {
		t.Errorf("outcomes %s, want %s", got, want)
	}
	if !strings.Contains(v.stderr, "ended before its question was answered") {
		t.Errorf("stderr %s", v.stderr)
	}
}

func TestIsTerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	file, err := os.Open("elicit_test.go")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, tc := range map[string]struct {
		in   io.Reader
		want bool
	}{
		"null device": {null, false},
		"file":        {file, false},
		"no file":     {strings.NewReader(""), false},
		"device":      {tty{}, true},
	} {
		if got := isTerminal(tc.in); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
