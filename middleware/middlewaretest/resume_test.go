package middlewaretest_test

import (
	"bufio"
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

func resumable() *middlewaretest.Options {
	return &middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true, Stream: true, EventIDs: true}
}

// TestResumeFaults: what a GET with Last-Event-ID gets after each cut.
func TestResumeFaults(t *testing.T) {
	s := middlewaretest.NewServer(resumable())
	defer s.Close()
	session := legacySession(t, s)
	for _, c := range []struct {
		fault  string
		status int
		ending string
		body   string
	}{
		{"sse-resume-delivers", 200, complete, "pay done"},
		{"sse-resume-delivers-after-end", 200, complete, "pay done"},
		{"sse-resume-405", 405, complete, "not allowed"},
		{"sse-resume-404", 404, complete, "no such stream"},
		{"sse-resume-nothing", 200, complete, ""},
		{"sse-resume-silent", 200, silent, ""},
	} {
		f, _ := middlewaretest.FaultNamed(c.fault)
		s.Script("pay", f)
		a := send(t, s, session, callBody("pay", ""))
		id, _, _ := strings.Cut(strings.TrimPrefix(string(a.body), "id: "), "\n")
		wait := patience
		if c.ending == silent {
			wait = quiet
		}
		got := exchange(t, s, wait, "GET", session+"Last-Event-ID: "+id+"\r\n", "")
		if got.status != c.status || got.ending != c.ending || !strings.Contains(string(got.body), c.body) {
			t.Errorf("%s: %d %s: %s", c.fault, got.status, got.ending, got.raw)
		}
		if c.body == "pay done" && !strings.HasPrefix(string(got.body), "id: "+strings.Replace(id, "_0", "_1", 1)+"\n") {
			t.Errorf("%s: %s", c.fault, got.body)
		}
	}
	if a := exchange(t, s, patience, "GET", session+"Last-Event-ID: s999_0\r\n", ""); a.status != 400 {
		t.Errorf("unknown stream: %d", a.status)
	}
}

// TestResumeHonest: a client that has gone gets by a GET what it missed, and what
// has happened since.
func TestResumeHonest(t *testing.T) {
	step := make(chan bool)
	tool := middlewaretest.Tool{Name: "steps", Streams: true, Run: func(_ ctx, c middlewaretest.Call) middlewaretest.Result {
		for i := range 3 {
			<-step
			c.Progress(i, 3)
		}
		return middlewaretest.Result{Text: "steps done"}
	}}
	o := resumable()
	o.Tools = []middlewaretest.Tool{tool}
	s := middlewaretest.NewServer(o)
	defer s.Close()
	session := legacySession(t, s)
	id, _, _ := strings.Cut(strings.TrimPrefix(session, "Mcp-Session-Id: "), "\r")

	gone, leave := context.WithCancel(t.Context())
	resp, err := postInSession(gone, s, id, strings.Replace(callBody("steps", ""), `"_meta":{`, `"_meta":{"progressToken":"p",`, 1))
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(resp.Body)
	if line, _ := r.ReadString('\n'); line != "id: s1_0\n" {
		t.Fatalf("first line %q", line)
	}
	leave()
	resp.Body.Close()
	step <- true
	go func() { step <- true; step <- true }()
	a := exchange(t, s, patience, "GET", session+"Last-Event-ID: s1_0\r\n", "")
	for i, want := range []string{"id: s1_1\n", "id: s1_2\n", "id: s1_3\n", "id: s1_4\n", "steps done"} {
		if !strings.Contains(string(a.body), want) {
			t.Errorf("%d: no %q in %s", i, want, a.body)
		}
	}
	if a := exchange(t, s, patience, "GET", session+"Last-Event-ID: s1_3\r\n", ""); !strings.HasPrefix(string(a.body), "id: s1_4\n") || a.ending != complete {
		t.Errorf("resumed at the end: %s", a.raw)
	}
}

// TestResumeOfficial: the official client resumes by itself.
func TestResumeOfficial(t *testing.T) {
	s := middlewaretest.NewServer(resumable())
	defer s.Close()
	cs := connect(t, s, nil)
	f, _ := middlewaretest.FaultNamed("sse-resume-delivers")
	s.Script("pay", f)
	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"})
	if err != nil || textOf(t, r) != "pay done" {
		t.Fatalf("%v, %v", r, err)
	}
	if s.Posts("pay") != 1 || s.Effects("pay") != 1 {
		t.Errorf("%d posts, %d effects", s.Posts("pay"), s.Effects("pay"))
	}
}

// TestStandaloneStream: what is written on it, and that it ends.
func TestStandaloneStream(t *testing.T) {
	s := middlewaretest.NewServer(&middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true, StandaloneSSE: true})
	defer s.Close()
	session := legacySession(t, s)
	if a := exchange(t, s, patience, "GET", "", ""); a.status != 400 {
		t.Errorf("without a session: %d", a.status)
	}
	changed := "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\",\"params\":{}}\n\n"
	for _, c := range []struct {
		do   func()
		want string
	}{
		{func() { s.Broadcast("no colon\n\n"); s.NotifyToolsChanged(); s.EndStreams() }, "no colon\n\n" + changed},
		{s.ForgetSessions, ""},
	} {
		answers := make(chan answer)
		go func() { answers <- exchange(t, s, patience, "GET", session, "") }()
		eventually(t, func() bool { return s.Subscribers() == 1 })
		c.do()
		if a := <-answers; string(a.body) != c.want || a.status != 200 || a.ending != complete {
			t.Errorf("%s: %s", a.ending, a.raw)
		}
		eventually(t, func() bool { return s.Subscribers() == 0 })
	}
}
