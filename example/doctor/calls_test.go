package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
)

func TestGoodCalls(t *testing.T) {
	for name, o := range kinds() {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, o)
			v := runDoctor(t, "-endpoint", s.URL(), "-json", "-safety", "read_*=read_only",
				"-call", `read_weather={"city":"Porto"}`, "-call", "pay")
			v.want(t, exitOK, "")
			if got, want := v.outcomes(t), "read_weather TOOL_SUCCESS answered; pay TOOL_SUCCESS answered"; got != want {
				t.Errorf("outcomes %s, want %s", got, want)
			}
			r := v.records(t)[0]
			if r.Safety != "read_only" || r.Rule != "-safety read_*=read_only" || r.Endpoint != s.URL() ||
				r.ProtocolVersion != o.Version || !strings.HasPrefix(r.Client, clientName+"@") {
				t.Errorf("record %+v", r)
			}
			if n := s.Effects("pay"); n != 1 {
				t.Errorf("%d effects", n)
			}
		})
	}
}

// TestFaults: a fault of every layer, each on a tool that must not be repeated; the
// call after it, in the same session, goes well.
func TestFaults(t *testing.T) {
	names := []string{
		"status-401", "status-409", "status-503-executed", "redirect-302-other-origin", "reset-executed", "cut-body",
		"body-login-page", "body-malformed", "envelope-wrong-id", "result-content-text", "jsonrpc-with-data",
		"jsonrpc-32005", "tool-error", "sse-progress-then-cut", "sse-malformed", "body-empty-202",
	}
	for kind, o := range kinds() {
		for _, name := range names {
			fault, ok := middlewaretest.FaultNamed(name)
			if !ok {
				t.Fatalf("no fault %s", name)
			}
			if !fault.Applies(&o) {
				continue
			}
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := newServer(t, o)
				s.Script("pay", fault)
				v := runDoctor(t, "-endpoint", s.URL(), "-json", "-call", "pay", "-call", "read_weather")
				v.want(t, exitFailed, "1 of 2 calls did not end in TOOL_SUCCESS")
				e := fault.Expected(&o)
				want := fmt.Sprintf("pay %s %s; read_weather TOOL_SUCCESS answered", e.Outcome, e.Delivery)
				if got := v.outcomes(t); got != want {
					t.Errorf("outcomes %s, want %s", got, want)
				}
				if n := s.Effects("pay"); n > 1 {
					t.Errorf("%d effects", n)
				}
			})
		}
	}
}

func TestRepeats(t *testing.T) {
	for class, want := range map[string]string{
		"unsafe": "pay_keyed HTTP_ERROR unknown", "keyed": "pay_keyed TOOL_SUCCESS answered",
	} {
		s := newServer(t, middlewaretest.Options{})
		s.Script("pay_keyed", middlewaretest.Status(503).Executed())
		v := runDoctor(t, "-endpoint", s.URL(), "-json", "-safety", "pay_*="+class, "-call", "pay_keyed")
		if got := v.outcomes(t); got != want {
			t.Errorf("%s: %s, want %s", class, got, want)
		}
		if n := s.Effects("pay_keyed"); n != 1 {
			t.Errorf("%s: %d effects", class, n)
		}
	}
}

func TestCallsInDarkEndInTime(t *testing.T) {
	t.Parallel()
	s := newServer(t, middlewaretest.Options{})
	s.Script("pay", middlewaretest.Hang())
	v := runDoctor(t, "-endpoint", s.URL(), "-json", "-timeout", "1s", "-call", "pay", "-call", "read_weather")
	v.want(t, exitFailed, "1 of 2 calls")
	if got, want := v.outcomes(t), "pay TIMEOUT unknown; read_weather TOOL_SUCCESS answered"; got != want {
		t.Errorf("outcomes %s, want %s", got, want)
	}
}

func TestSurface(t *testing.T) {
	s := newServer(t, middlewaretest.Options{})
	s.Always("pay", middlewaretest.Status(500))
	args := []string{"-endpoint", s.URL(), "-call", "pay"}
	for _, tc := range []struct {
		who  string
		sees bool
	}{{"caller", false}, {"model", true}} {
		v := runDoctor(t, append(args, "-surface", tc.who)...)
		v.want(t, exitFailed, "1 of 1 calls")
		if strings.Contains(v.stdout, "model sees") != tc.sees || !strings.Contains(v.stdout, "seen  ") {
			t.Errorf("%s:\n%s", tc.who, v.stdout)
		}
		v = runDoctor(t, append(args, "-surface", tc.who, "-json")...)
		if r := v.records(t)[0]; (r.ModelText != "") != tc.sees || r.Outcome != observe.HTTPError {
			t.Errorf("%s: record %+v", tc.who, r)
		}
	}
}

// TestParallel: of three calls each waits for the answer to the next, so that they
// end only if they are made together; the records come in the order of the flags.
func TestParallel(t *testing.T) {
	tool := func(name string, next, answered chan bool) middlewaretest.Tool {
		return middlewaretest.Tool{Name: name, Run: func(ctx context.Context, _ middlewaretest.Call) middlewaretest.Result {
			select {
			case <-next:
			case <-ctx.Done():
			}
			close(answered)
			return middlewaretest.Result{Text: "done"}
		}}
	}
	a, b, c, nothing := make(chan bool), make(chan bool), make(chan bool), make(chan bool)
	close(nothing)
	s := newServer(t, middlewaretest.Options{Tools: []middlewaretest.Tool{tool("a", b, a), tool("b", c, b), tool("c", nothing, c)}})
	v := runDoctor(t, "-endpoint", s.URL(), "-json", "-parallel", "3", "-timeout", "20s", "-call", "a", "-call", "b", "-call", "c")
	v.want(t, exitOK, "")
	want := "a TOOL_SUCCESS answered; b TOOL_SUCCESS answered; c TOOL_SUCCESS answered"
	if got := v.outcomes(t); got != want {
		t.Errorf("outcomes %s, want %s", got, want)
	}
}

func TestParallelBeyondTheCalls(t *testing.T) {
	s := newServer(t, middlewaretest.Options{})
	args := []string{"-endpoint", s.URL(), "-json", "-parallel", "50"}
	for range 20 {
		args = append(args, "-call", "send_mail")
	}
	v := runDoctor(t, args...)
	v.want(t, exitOK, "")
	if n, sent := len(v.records(t)), s.Effects("send_mail"); n != 20 || sent != 20 {
		t.Errorf("%d records, %d effects", n, sent)
	}
}

func TestInterrupt(t *testing.T) {
	for _, parallel := range []string{"1", "2"} {
		s := newServer(t, middlewaretest.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		s.SetTool(middlewaretest.Tool{Name: "pay", Run: func(ctx context.Context, _ middlewaretest.Call) middlewaretest.Result {
			cancel()
			<-ctx.Done()
			return middlewaretest.Result{}
		}})
		v := runWith(ctx, strings.NewReader(""), "-endpoint", s.URL(), "-json", "-parallel", parallel, "-call", "pay",
			"-call", `pay={"n":2}`, "-call", `pay={"n":3}`)
		v.want(t, exitFailed, "doctor: interrupted; ")
		r := v.records(t)
		dark := 0 // with two at a time, the other one may not have been sent
		for i := range r {
			if r[i].Delivery == observe.Unknown {
				dark++
			}
			if r[i].Outcome != observe.Canceled {
				t.Errorf("outcomes %s", v.outcomes(t))
			}
		}
		if dark == 0 || len(r) == 3 {
			t.Errorf("outcomes %s", v.outcomes(t))
		}
		if unmade := fmt.Sprintf("%d of 3 calls were not made", 3-len(r)); !strings.Contains(v.stderr, unmade) {
			t.Errorf("stderr %q, want %q", v.stderr, unmade)
		}
	}
}

// full is a standard output that cannot be written.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestUnwrittenRecord(t *testing.T) {
	s := newServer(t, middlewaretest.Options{})
	var stderr strings.Builder
	status := run(t.Context(), []string{"-endpoint", s.URL(), "-json", "-call", "pay"}, strings.NewReader(""), full{}, &stderr)
	if status != exitFailed || !strings.Contains(stderr.String(), "stdout cannot be written: no space left") {
		t.Errorf("status %d, stderr %s", status, stderr.String())
	}
}
