package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

const goodLine = `{"jsonrpc":"2.0","id":%id%,"result":{"content":[]}}`

// TestStdioOutcomes: a message over stdio has the outcome that it has over HTTP, at
// once, and the session lives.
func TestStdioOutcomes(t *testing.T) {
	lines := map[string]string{
		"good":                 goodLine,
		"tool error":           `{"jsonrpc":"2.0","id":%id%,"result":{"content":[],"isError":true}}`,
		"error":                `{"jsonrpc":"2.0","id":%id%,"error":{"code":-32602,"message":"m"}}`,
		"refused":              `{"jsonrpc":"2.0","id":%id%,"error":{"code":-32601,"message":"m"}}`,
		"the SDK's own code":   `{"jsonrpc":"2.0","id":%id%,"error":{"code":-32004,"message":"m"}}`,
		"code form":            `{"jsonrpc":"2.0","id":%id%,"error":{"code":-32602.0,"message":"m"}}`,
		"error null":           `{"jsonrpc":"2.0","id":%id%,"error":null,"result":{"content":[]}}`,
		"id form":              `{"jsonrpc":"2.0","id":%id%.0,"result":{"content":[]}}`,
		"white space":          " \t" + goodLine + " \r",
		"cut":                  `{"jsonrpc":"2.0","id":%id%,"result":{"content":[`,
		"cut, id first":        `{"id":%id%,"jsonrpc":"2.0","resu`,
		"cut after a brace":    `{ "jsonrpc"`,
		"cut at its beginning": `{"jsonrpc":"2.0","id":%id%,"result":{"content":[`,
		"trailing":             goodLine + "x",
		"two on a line":        goodLine + goodLine,
		"byte order mark":      "\xef\xbb\xbf" + goodLine,
		"not UTF-8":            `{"jsonrpc":"2.0","id":%id%,"result":{"content":[{"type":"text","text":"%ff%"}]}}`,
		"too deep":             `{"jsonrpc":"2.0","id":%id%,"result":{"content":[],"x":` + strings.Repeat("[", 1100) + strings.Repeat("]", 1100) + `}}`,
		"batch":                "[" + goodLine + "]",
		"wrong id":             `{"jsonrpc":"2.0","id":99999,"result":{"content":[]}}`,
		"string id":            `{"jsonrpc":"2.0","id":"%id%","result":{"content":[]}}`,
		"half id":              `{"jsonrpc":"2.0","id":%id%.5,"result":{"content":[]}}`,
		"null id":              `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`,
		"no id":                `{"jsonrpc":"2.0","result":{"content":[]}}`,
		"no version":           `{"id":%id%,"result":{"content":[]}}`,
		"wrong version":        `{"jsonrpc":"1.0","id":%id%,"result":{"content":[]}}`,
		"both":                 `{"jsonrpc":"2.0","id":%id%,"result":{"content":[]},"error":{"code":1,"message":"m"}}`,
		"neither":              `{"jsonrpc":"2.0","id":%id%}`,
		"method beside result": `{"jsonrpc":"2.0","id":%id%,"method":"x","result":{"content":[]}}`,
		"repeated member":      `{"jsonrpc":"2.0","id":%id%,"result":{"content":[],"isError":true,"isError":false}}`,
		"bad error":            `{"jsonrpc":"2.0","id":%id%,"error":"m"}`,
		"string code":          `{"jsonrpc":"2.0","id":%id%,"error":{"code":"-1","message":"m"}}`,
		"null result":          `{"jsonrpc":"2.0","id":%id%,"result":null}`,
		"no content":           `{"jsonrpc":"2.0","id":%id%,"result":{}}`,
		"isError a string":     `{"jsonrpc":"2.0","id":%id%,"result":{"content":[],"isError":"true"}}`,
		"unknown resultType":   `{"jsonrpc":"2.0","id":%id%,"result":{"content":[],"resultType":"later"}}`,
	}
	onVersions(t, func(t *testing.T, version string) {
		for name, text := range lines {
			t.Run(name, func(t *testing.T) { checkLine(t, version, text) })
		}
	})
}

func checkLine(t *testing.T, version, text string) {
	r, s := newPipeRig(t, version)
	_, rec, err := r.call("pay", orders{Say: []string{text}, Silent: true}, 20*time.Second)
	id := string(rec.JSONRPC.ID)
	want := observe.Classify(observe.Answer{
		Status: http.StatusOK, Body: []byte(strings.NewReplacer("%id%", id, "%ff%", "\xff").Replace(text)), ID: id, ProtocolVersion: version,
	}, nil)
	if rec.Outcome != want.Outcome || rec.Delivery != want.Delivery || !slices.Equal(rec.Deviations, append([]observe.Deviation{}, want.Deviations...)) {
		t.Errorf("%s %s %v, over HTTP %s %s %v", rec.Outcome, rec.Delivery, rec.Deviations, want.Outcome, want.Delivery, want.Deviations)
	}
	if (err == nil) != want.Outcome.Usable() || rec.PostCount != 1 || len(rec.Attempts) != 1 || s.count("pay") != 1 {
		t.Errorf("error %v, %d messages, %d attempts, %d effects", err, rec.PostCount, len(rec.Attempts), s.count("pay"))
	}
	var e *observe.Error
	if err != nil && (!errors.As(err, &e) || e.Outcome != want.Outcome || errors.Is(err, mcp.ErrConnectionClosed)) {
		t.Errorf("error %v", err)
	}
	r.serves()
}

// TestStdioDecoding: a result that only the SDK finds wrong.
func TestStdioDecoding(t *testing.T) {
	onVersions(t, func(t *testing.T, version string) {
		r, _ := newPipeRig(t, version)
		_, rec, err := r.call("pay", orders{Say: []string{`{"jsonrpc":"2.0","id":%id%,"result":{"content":[{"type":"nosuch"}]}}`}, Silent: true}, 20*time.Second)
		if err == nil || rec.Outcome != observe.InvalidToolResult || rec.Delivery != observe.Unknown {
			t.Errorf("error %v, record %+v", err, rec)
		}
		r.serves()
	})
}

// TestStdioStrayLines: what a server writes to its output beside its messages is no
// answer, whatever it looks like.
func TestStdioStrayLines(t *testing.T) {
	stray := []string{
		"listening", "[INFO] started {", `{"level":30,"msg":"hi","id":1}`, `{"id":%id%,"level":"info","msg":"handled"}`, "{", "}", "[1,2]", "null", "7",
		`"text"`, `{foo}`, "\x00%ff%", `{"msg":"{\"jsonrpc\":\"2.0\"}"}`, "Content-Length: 52", "",
		`{"level":"debug","msg":"recv","message":{"jsonrpc":"2.0","id":%id%,"method":"tools/call"}}`,
		`{"level":"info","logger":"jsonrpc","msg":"x"}`, `[info] "jsonrpc" hello`, `{dump "jsonrpc": 2.0}`, `[{"msg":"jsonrpc"},{"jsonrpc":"2.0"}]`,
		`{"level":"info","id":%id%,"result":"ok"}`, `{"id":%id%,"error":null,"time":1}`, `{"id":%id%,"result":{"jsonrpc":"2.0"},"took`,
		`{"msg":"sent","data":{"jsonrpc":"2.0","id":%id%,"resu`,
	}
	onVersions(t, func(t *testing.T, version string) {
		r, s := newPipeRig(t, version)
		for _, text := range stray {
			_, rec, err := r.call("pay", orders{Say: []string{text, text}, Pad: text}, 20*time.Second)
			noted := slices.Equal(rec.Deviations, []observe.Deviation{observe.DeviationStrayLine})
			if err != nil || rec.Outcome != observe.ToolSuccess || noted != (text != "") {
				t.Errorf("%q: error %v, record %+v", text, err, rec)
			}
		}
		if n := s.count("pay"); n != len(stray) {
			t.Errorf("%d effects", n)
		}
	})
}

// TestStdioServerSpeaks: notifications and requests of the server's pass.
func TestStdioServerSpeaks(t *testing.T) {
	onVersions(t, func(t *testing.T, version string) {
		r, _ := newPipeRig(t, version)
		_, rec, err := r.call("pay", orders{Say: []string{
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`,
			`{"jsonrpc":"2.0","id":%id%,"method":"ping"}`,
		}}, 20*time.Second)
		want := []observe.Deviation{}
		if version >= "2026-07-28" {
			want = append(want, observe.DeviationServerRequest)
		}
		if err != nil || rec.Outcome != observe.ToolSuccess || !slices.Equal(rec.Deviations, want) {
			t.Errorf("error %v, record %+v", err, rec)
		}
	})
}

// hold makes a call that gets no answer until another one says so.
func (r *lineRig) hold(t *testing.T, s *lineServer, tool string) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := r.session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: orders{Silent: true}})
		done <- err
	}()
	waitUntil(t, func() bool { return s.count(tool) > 0 })
	return done
}

func waitUntil(t *testing.T, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come true")
		}
	}
}

const heldLine = `{"jsonrpc":"2.0","id":%held%,"result":{"content":[]}}`

// TestStdioSeveral: with two calls in flight, what cannot be told to belong to one of
// them ends neither; what can, ends that one alone.
func TestStdioSeveral(t *testing.T) {
	onVersions(t, func(t *testing.T, version string) {
		for _, text := range []string{
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`,
			`{"jsonrpc":"2.0","id":99999,"result":{"content":[]}}`,
			`{"jsonrpc":"2.0","resu`,
		} {
			r, s := newPipeRig(t, version)
			held := r.hold(t, s, "send_mail")
			_, rec, err := r.call("pay", orders{Say: []string{text, heldLine}}, 20*time.Second)
			if first := <-held; first != nil || err != nil || rec.Outcome != observe.ToolSuccess {
				t.Errorf("%s: errors %v and %v", text, first, err)
			}
			for _, rec := range []*observe.Record{rec, <-r.records} {
				if !slices.Equal(rec.Deviations, []observe.Deviation{observe.DeviationUnclaimed}) {
					t.Errorf("%s: %s has deviations %v", text, rec.Tool, rec.Deviations)
				}
			}
		}
		r, s := newPipeRig(t, version)
		held := r.hold(t, s, "send_mail")
		_, rec, err := r.call("pay", orders{Say: []string{`{"jsonrpc":"2.0","id":%held%,"result":{"cont`}}, 20*time.Second)
		var e *observe.Error
		if first := <-held; !errors.As(first, &e) || e.Outcome != observe.MalformedJSON || e.Delivery != observe.Unknown {
			t.Errorf("the call that was answered badly: %v", first)
		}
		if err != nil && rec.Outcome != observe.MalformedJSON {
			t.Errorf("the other call: %v", err)
		}
		r.serves2()
	})
}

// serves2 is serves where a record may be left over.
func (r *lineRig) serves2() {
	for len(r.records) > 0 {
		<-r.records
	}
	r.serves()
}

// TestStdioLateAnswer: the answer to a call that was given up is not one to the next.
func TestStdioLateAnswer(t *testing.T) {
	onVersions(t, func(t *testing.T, version string) {
		r, s := newPipeRig(t, version)
		late := lateness(50 * time.Millisecond)
		_, rec, err := r.call("pay", orders{Silent: true}, 50*time.Millisecond)
		if over := late(); over > 150*time.Millisecond || !errors.Is(err, context.DeadlineExceeded) || rec.Outcome != observe.Timeout || rec.Delivery != observe.Unknown {
			t.Errorf("%v late, error %v, record %+v", over, err, rec)
		}
		_, rec, err = r.call("send_mail", orders{Say: []string{heldLine, `{"jsonrpc":"2.0","id":%held%,"result":null}`}}, 20*time.Second)
		if err != nil || rec.Outcome != observe.ToolSuccess || len(rec.Deviations) != 0 {
			t.Errorf("error %v, record %+v", err, rec)
		}
		if s.count("pay") != 1 || s.count("send_mail") != 1 {
			t.Errorf("%d and %d effects", s.count("pay"), s.count("send_mail"))
		}
	})
}

// TestStdioCanceled: the caller's own cancellation is told at once, to the server too.
func TestStdioCanceled(t *testing.T) {
	onVersions(t, func(t *testing.T, version string) {
		r, s := newPipeRig(t, version)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := r.session.CallTool(ctx, &mcp.CallToolParams{Name: "pay", Arguments: orders{Silent: true}})
			done <- err
		}()
		waitUntil(t, func() bool { return s.count("pay") == 1 })
		late := lateness(0)
		cancel()
		err := <-done
		if over := late(); over > 100*time.Millisecond || !errors.Is(err, context.Canceled) {
			t.Errorf("%v late: %v", over, err)
		}
		if rec := <-r.records; rec.Outcome != observe.Canceled || rec.Delivery != observe.Unknown {
			t.Errorf("record %+v", rec)
		}
		waitUntil(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return slices.Equal(s.cancelled, []string{s.held}) })
		r.serves()
	})
}

// TestStdioParallel: many callers at once, each of whom gets what its call came to.
func TestStdioParallel(t *testing.T) {
	kinds := []struct {
		orders orders
		want   observe.Outcome
		within time.Duration
	}{
		{orders{}, observe.ToolSuccess, time.Minute},
		{orders{Say: []string{"log", `{"level":"info"}`}}, observe.ToolSuccess, time.Minute},
		{orders{Say: []string{`{"jsonrpc":"2.0","id":%id%,"result":{"content":[`}, Silent: true}, observe.MalformedJSON, time.Minute},
		{orders{Say: []string{`{"jsonrpc":"2.0","id":%id%,"result":{}}`}}, observe.InvalidToolResult, time.Minute},
		{orders{Say: []string{`{"jsonrpc":"2.0","id":%id%,"error":{"code":-1,"message":"m"}}`}, Silent: true}, observe.JSONRPCError, time.Minute},
		{orders{Silent: true}, observe.Timeout, 200 * time.Millisecond},
	}
	onVersions(t, func(t *testing.T, version string) {
		r, s := newPipeRig(t, version, policy.Rule{Settings: policy.Settings{Breaker: policy.Breaker{Failures: -1}, Key: policy.Key{Guard: -1}}})
		const callers, calls = 32, 12
		var wg sync.WaitGroup
		var unsent atomic.Int64
		for i := range callers {
			wg.Go(func() {
				for j := range calls {
					k := kinds[(i+j)%len(kinds)]
					ctx, cancel := context.WithTimeout(t.Context(), k.within)
					_, err := r.session.CallTool(ctx, &mcp.CallToolParams{Name: "pay", Arguments: k.orders})
					cancel()
					var e *observe.Error
					switch {
					case err == nil && k.want == observe.ToolSuccess:
					case !errors.As(err, &e) || e.Outcome != k.want:
						t.Errorf("%+v: %v", k.orders, err)
					case e.Delivery == observe.NotSent:
						unsent.Add(1) // the machine was busy
					}
				}
			})
		}
		wg.Wait()
		r.serves2()
		if n, sent := s.count("pay"), callers*calls-int(unsent.Load()); n > sent || n < callers*calls*5/6 {
			t.Errorf("%d effects of %d calls that may have been sent", n, sent)
		}
	})
}

// TestStdioBareClient: what the SDK's own transport makes of a line of the server's
// log: the session is gone, and with it a call that was answered well.
func TestStdioBareClient(t *testing.T) {
	serverIn, clientOut := io.Pipe()
	clientIn, serverOut := io.Pipe()
	go func() {
		newLineServer("2025-11-25", serverOut).serve(serverIn)
		serverOut.Close()
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	cs, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: clientIn, Writer: clientOut}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay", Arguments: orders{Say: []string{"log"}}}); err == nil {
		t.Error("the SDK reads on: see what of this library is still needed")
	}
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"}); !errors.Is(err, mcp.ErrConnectionClosed) {
		t.Errorf("the next call: %v", err)
	}
}

// TestStdioRoundKeys: each round has a key of its own, the call's beside it.
func TestStdioRoundKeys(t *testing.T) {
	r, s := newPipeRig(t, "2026-07-28")
	_, rec, err := r.call("pay", orders{Ask: true}, 20*time.Second)
	if err != nil || rec.Outcome != observe.ToolSuccess || rec.PostCount != 2 || r.asked != 1 || s.count("pay") != 1 {
		t.Fatalf("error %v, asked %d times, record %+v", err, r.asked, rec)
	}
	rounds := s.calls()
	call, _ := rounds[0][idempotency.MetaKey].(string)
	if call == "" || rounds[0][idempotency.MetaCallKey] != nil {
		t.Errorf("round 1: %v", rounds[0])
	}
	if rounds[1][idempotency.MetaKey] != idempotency.RoundKey(call, 2) || rounds[1][idempotency.MetaCallKey] != call {
		t.Errorf("round 2: %v, the call's key %s", rounds[1], call)
	}
}

// TestStdioResumesRound: a round that fails is repeated with its own key, and nobody
// is asked again.
func TestStdioResumesRound(t *testing.T) {
	repeat := policy.Rule{Tool: "pay_keyed", Settings: policy.Settings{
		Safety: policy.Keyed, Limits: policy.Limits{Attempt: 200 * time.Millisecond}, Retry: policy.Retry{Repeats: 1, Backoff: time.Millisecond},
	}}
	r, s := newPipeRig(t, "2026-07-28", repeat)
	_, rec, err := r.call("pay_keyed", orders{Ask: true, Silent: true}, 20*time.Second)
	if err == nil || rec.Outcome != observe.Timeout || len(rec.Attempts) != 2 || rec.PostCount != 3 || r.asked != 1 {
		t.Fatalf("error %v, asked %d times, record %+v", err, r.asked, rec)
	}
	calls := s.calls()
	if k := calls[1][idempotency.MetaKey]; k == nil || k == calls[0][idempotency.MetaKey] || calls[2][idempotency.MetaKey] != k {
		t.Errorf("keys of the rounds: %v", calls)
	}
}

// TestStdioLimits: a limit that runs out ends the attempt, on the server too, and not
// the session.
func TestStdioLimits(t *testing.T) {
	onVersions(t, func(t *testing.T, version string) {
		r, s := newPipeRig(t, version, policy.Rule{Tool: "pay", Settings: policy.Settings{Limits: policy.Limits{Attempt: 30 * time.Millisecond}}})
		_, rec, err := r.call("pay", orders{Silent: true}, 20*time.Second)
		if err == nil || rec.Outcome != observe.Timeout || rec.Delivery != observe.Unknown || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, record %+v", err, rec)
		}
		r.serves()
		s.mu.Lock()
		defer s.mu.Unlock()
		if !slices.Equal(s.cancelled, []string{s.held}) {
			t.Errorf("cancelled %v, want %s", s.cancelled, s.held)
		}
	})
}

// TestStdioShedding: a server that puts the call off is asked again after a wait, and
// not at once as the SDK does.
func TestStdioShedding(t *testing.T) {
	backoff := policy.Rule{Tool: "pay", Settings: policy.Settings{Retry: policy.Retry{Backoff: 20 * time.Millisecond}}}
	r, s := newPipeRig(t, "2026-07-28", backoff)
	started := time.Now()
	_, rec, err := r.call("pay", orders{Shed: 4}, 20*time.Second)
	if err != nil || rec.PostCount != 5 || len(rec.Attempts) != 1 || s.count("pay") != 1 || time.Since(started) < 150*time.Millisecond {
		t.Errorf("after %v: %v, %+v", time.Since(started), err, rec)
	}
	for i, p := range rec.Attempts[0].Posts {
		if i > 0 && (len(p.Waits) != 1 || p.Waits[0].For != observe.WaitPutOff || p.Waits[0].Ms < 10) || p.Bytes == 0 {
			t.Errorf("request %d: %+v", i, p)
		}
	}
	r, s = newPipeRig(t, "2026-07-28", backoff)
	res, rec, err := r.call("pay", orders{Shed: 1000}, 400*time.Millisecond)
	if err != nil || rec.Outcome != observe.InputRequired || rec.Decision.Action != "stop" || !res.NeedsInput() || !res.IsError || s.count("pay") != 0 {
		t.Errorf("without end: %v, %+v, record %+v", err, res, rec)
	}
}

// TestStdioProgressExtends: where the policy says so, progress begins the limit of an
// attempt anew.
func TestStdioProgressExtends(t *testing.T) {
	onVersions(t, func(t *testing.T, version string) {
		for _, extends := range []bool{false, true} {
			limit := policy.Rule{Tool: "pay", Settings: policy.Settings{Limits: policy.Limits{Attempt: 400 * time.Millisecond, Progress: &extends}}}
			r, s := newPipeRig(t, version, limit)
			_, rec, err := r.call("pay", orders{Work: 14}, 20*time.Second)
			if (err == nil) != extends || (rec.Outcome == observe.Timeout) == extends || s.count("pay") != 1 {
				t.Errorf("extends %t: %v, %+v", extends, err, rec)
			}
		}
	})
}

// TestStdioLimitsPauseForServerRequests: while the server waits for a person, no limit
// runs (2025-11-25); then they go on.
func TestStdioLimitsPauseForServerRequests(t *testing.T) {
	limit := policy.Rule{Tool: "pay", Settings: policy.Settings{Limits: policy.Limits{Attempt: 200 * time.Millisecond}}}
	question := `{"jsonrpc":"2.0","id":1.0e0,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}`
	r, s := newPipeRig(t, "2025-11-25", limit)
	r.thinks = 600 * time.Millisecond
	_, rec, err := r.call("pay", orders{Say: []string{question}, Silent: true}, 20*time.Second)
	if err != nil || rec.Outcome != observe.ToolSuccess || r.asked != 1 || s.count("pay") != 1 {
		t.Errorf("asked %d times, %v, %+v", r.asked, err, rec)
	}
	started := time.Now()
	_, rec, err = r.call("pay", orders{Say: []string{strings.Replace(question, "1.0e0", `"a"`, 1), `{"jsonrpc":"2.0","id":"b","method":"ping"}`}, Silent: true, Mute: true}, 20*time.Second)
	if err == nil || rec.Outcome != observe.Timeout || time.Since(started) < r.thinks || time.Since(started) > 10*time.Second {
		t.Errorf("after %v: %v, %+v", time.Since(started), err, rec)
	}
}

// TestStdioLaterRoundsAreAdmitted: a later round takes its token of the limiter.
func TestStdioLaterRoundsAreAdmitted(t *testing.T) {
	slow := policy.Rule{Tool: "pay", Settings: policy.Settings{Limiter: policy.Limiter{Rate: 10, Burst: 1}}}
	r, s := newPipeRig(t, "2026-07-28", slow)
	started := time.Now()
	_, rec, err := r.call("pay", orders{Ask: true}, 20*time.Second)
	if err != nil || rec.PostCount != 2 || s.count("pay") != 1 || time.Since(started) < 90*time.Millisecond {
		t.Errorf("after %v: %v, %+v", time.Since(started), err, rec)
	}
}

// TestStdioTooLarge: an answer over the limit ends its call, however large it is.
func TestStdioTooLarge(t *testing.T) {
	onVersions(t, func(t *testing.T, version string) {
		for _, size := range []int{3000, 300_000} {
			r, s := newPipeRig(t, version, policy.Rule{Settings: policy.Settings{MaxResult: 2000}})
			_, rec, err := r.call("pay", orders{Say: []string{`{"jsonrpc":"2.0","id":%id%,"result":{"content":[],"x":"` + strings.Repeat("x", size) + `"}}`}, Silent: true}, 20*time.Second)
			if err == nil || rec.Outcome != observe.ResultTooLarge || rec.Delivery != observe.Unknown || s.count("pay") != 1 {
				t.Errorf("error %v, record %+v", err, rec)
			}
			r.serves()
		}
	})
}

// TestStdioTooLargeAtOnce: an answer over the limit is told before its line has ended,
// and the rest of the line disturbs nobody.
func TestStdioTooLargeAtOnce(t *testing.T) {
	onVersions(t, func(t *testing.T, version string) {
		for name, beginning := range map[string]string{
			"its id":    `{"jsonrpc":"2.0","id":%id%,"result":{"content":[{"type":"text","text":"`,
			"no id yet": `{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"`,
		} {
			size := 300_000
			if name == "no id yet" { // then the limit of any line counts
				size = int(policy.Defaults().MaxResult) + 300_000
			}
			r, s := newPipeRig(t, version, policy.Rule{Settings: policy.Settings{MaxResult: 200_000}})
			ended := make(chan bool)
			s.write = func(r *lineRequest, out io.Writer) {
				_, _ = io.WriteString(out, strings.ReplaceAll(beginning, "%id%", string(r.ID))+strings.Repeat("x", size))
				<-ended
				_, _ = io.WriteString(out, strings.Repeat("x", size)+"\n")
			}
			late := lateness(0)
			_, rec, err := r.call("pay", orders{Silent: true}, 20*time.Second)
			if err == nil || rec.Outcome != observe.ResultTooLarge || rec.Delivery != observe.Unknown || late() > 5*time.Second {
				t.Errorf("%s: after %v: error %v, record %+v", name, late(), err, rec)
			}
			close(ended)
			s.mu.Lock()
			s.write = nil
			s.mu.Unlock()
			r.serves()
			if s.count("pay") != 1 {
				t.Errorf("%d effects", s.count("pay"))
			}
		}
	})
}

// TestStdioServerDies: a process that dies after the effect: told at once, in doubt,
// and not called again; later calls are not sent, and frameworks reconnect.
func TestStdioServerDies(t *testing.T) {
	onVersions(t, func(t *testing.T, version string) {
		for _, tool := range []string{"pay", "pay_keyed", "read_weather"} {
			c := newChild(t, version)
			r := newLineRig(t, version, func(s *middleware.Stack) mcp.Transport { return s.CommandTransport(c.Cmd) })
			started := time.Now()
			_, rec, err := r.call(tool, orders{Exit: true}, 20*time.Second)
			if err == nil || rec.Outcome != observe.NetworkError || rec.Delivery != observe.Unknown || len(rec.Attempts) != 1 || time.Since(started) > 20*time.Second {
				t.Errorf("%s: error %v after %v, record %+v", tool, err, time.Since(started), rec)
			}
			if safe := tool != "pay"; errors.Is(err, io.EOF) != safe || errors.Is(err, mcp.ErrConnectionClosed) {
				t.Errorf("%s: what a framework looks for: %v", tool, err)
			}
			_, rec, err = r.call("send_mail", orders{}, 20*time.Second)
			if err == nil || rec.Outcome != observe.SessionLost || rec.Delivery != observe.NotSent || len(rec.Attempts) != 1 || !errors.Is(err, mcp.ErrConnectionClosed) {
				t.Errorf("a call afterwards: error %v, record %+v", err, rec)
			}
			if c.effects(tool) != 1 || c.effects("send_mail") != 0 {
				t.Errorf("%d and %d effects", c.effects(tool), c.effects("send_mail"))
			}
		}
	})
}

// TestStdioServerDiesBehindAnother: a process that the server leaves behind holds its
// output and its stderr; its death is told at once nevertheless, and its last answer
// still counts.
func TestStdioServerDiesBehindAnother(t *testing.T) {
	onVersions(t, func(t *testing.T, version string) {
		for _, answered := range []bool{false, true} {
			c := newChild(t, version)
			c.Stderr = new(bytes.Buffer)
			r := newLineRig(t, version, func(s *middleware.Stack) mcp.Transport { return s.CommandTransport(c.Cmd) })
			o := orders{Heir: true, Exit: true}
			if answered {
				o.Say = []string{goodLine}
			}
			late := lateness(0)
			_, rec, err := r.call("pay", o, 20*time.Second)
			if over := late(); over > 2*time.Second || (err == nil) != answered {
				t.Errorf("after %v: %v", over, err)
			}
			if !answered && (rec.Outcome != observe.NetworkError || rec.Delivery != observe.Unknown || len(rec.Attempts) != 1) {
				t.Errorf("record %+v", rec)
			}
			late = lateness(0)
			var exit *exec.ExitError
			if err := r.session.Close(); !errors.As(err, &exit) || exit.ExitCode() != 3 || late() > 2*time.Second {
				t.Errorf("closing: %v", err)
			}
			if c.effects("pay") != 1 {
				t.Errorf("%d effects", c.effects("pay"))
			}
		}
	})
}

// TestStdioServerDoesNotRead: more than a pipe holds, to a process that reads nothing
// after its first call.
func TestStdioServerDoesNotRead(t *testing.T) {
	onVersions(t, func(t *testing.T, version string) {
		c := newChild(t, version)
		r := newLineRig(t, version, func(s *middleware.Stack) mcp.Transport {
			transport := s.CommandTransport(c.Cmd)
			transport.TerminateDuration = 50 * time.Millisecond
			return transport
		})
		_, _, _ = r.call("read_first", orders{Deaf: true}, 100*time.Millisecond)
		for _, step := range []struct {
			pad      int
			delivery observe.Delivery
		}{{128 << 10, observe.Unknown}, {0, observe.NotSent}} {
			late := lateness(300 * time.Millisecond)
			_, rec, err := r.call("pay", orders{Pad: strings.Repeat("x", step.pad)}, 300*time.Millisecond)
			if over := late(); over > 150*time.Millisecond || !errors.Is(err, context.DeadlineExceeded) || rec.Outcome != observe.Timeout || rec.Delivery != step.delivery {
				t.Errorf("%v late, error %v, record %+v", over, err, rec)
			}
		}
		started := time.Now()
		if err := r.session.Close(); err == nil || time.Since(started) > 5*time.Second {
			t.Errorf("closing took %v: %v", time.Since(started), err)
		}
		if c.effects("pay") != 0 {
			t.Errorf("%d effects", c.effects("pay"))
		}
	})
}

// TestStdioSlowReader: the call whose line is under way is given up; the line is
// finished when the server reads again, and the session is whole.
func TestStdioSlowReader(t *testing.T) {
	onVersions(t, func(t *testing.T, version string) {
		serverIn, clientOut := io.Pipe()
		clientIn, serverOut := io.Pipe()
		s := newLineServer(version, serverOut)
		slow := &slowReader{Reader: serverIn, open: make(chan struct{})}
		close(slow.open)
		go func() { s.serve(slow); serverOut.Close() }()
		r := newLineRig(t, version, func(stack *middleware.Stack) mcp.Transport { return stack.IOTransport(clientIn, clientOut) })
		r.serves()
		slow.stop()
		_, rec, _ := r.call("pay", orders{Pad: strings.Repeat("x", 5000)}, 300*time.Millisecond)
		if rec.Outcome != observe.Timeout || rec.Delivery != observe.Unknown {
			t.Errorf("record %+v", rec)
		}
		slow.goOn()
		r.serves()
		if n := s.count("pay"); n != 1 {
			t.Errorf("%d effects: half a line", n)
		}
	})
}

// TestStdioStubborn: a process that neither ends with its input nor at SIGTERM is
// killed, and no process is left.
func TestStdioStubborn(t *testing.T) {
	c := newChild(t, "2026-07-28", "SURECALL_TEST_STUBBORN=1")
	r := newLineRig(t, "2026-07-28", func(s *middleware.Stack) mcp.Transport {
		transport := s.CommandTransport(c.Cmd)
		transport.TerminateDuration = 50 * time.Millisecond
		return transport
	})
	r.serves()
	started := time.Now()
	err := r.session.Close()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Exited() || time.Since(started) > 5*time.Second {
		t.Errorf("closing took %v: %v", time.Since(started), err)
	}
}

// TestStdioAlone: the transports without the middlewares, and without anything.
func TestStdioAlone(t *testing.T) {
	c := newChild(t, "2026-07-28")
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	cs, err := client.Connect(t.Context(), &middleware.CommandTransport{Command: c.Cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay", Arguments: orders{Say: []string{`{"jsonrpc":"2.0","id":99,"result":{}}`}, Silent: true}})
	if e, ok := middleware.ErrorFrom(err); !ok || e.Outcome != observe.InvalidEnvelope || e.Tool != "pay" {
		t.Errorf("error %v", err)
	}
	if err := cs.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	for _, transport := range []mcp.Transport{
		&middleware.CommandTransport{}, &middleware.IOTransport{}, &middleware.CommandTransport{Command: exec.Command("/no/such/program")},
	} {
		if _, err := client.Connect(t.Context(), transport, nil); err == nil {
			t.Errorf("%T connects", transport)
		}
	}
}

// TestStdioSubscription: the subscription that a session of 2026-07-28 keeps open is no
// call in flight: it takes no broken line, brings its notifications, and holds no Close.
func TestStdioSubscription(t *testing.T) {
	serverIn, clientOut := io.Pipe()
	clientIn, serverOut := io.Pipe()
	server := plainServer()
	ss, err := server.Connect(t.Context(), &mcp.IOTransport{Reader: serverIn, Writer: serverOut}, nil)
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan bool, 10)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- true },
	})
	stack := middleware.New(nil)
	client.AddSendingMiddleware(stack.Middleware()...)
	cs, err := client.Connect(t.Context(), stack.IOTransport(clientIn, clientOut), nil)
	if err != nil {
		t.Fatal(err)
	}
	mcp.AddTool(server, &mcp.Tool{Name: "new"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		_, err := io.WriteString(serverOut, `{"jsonrpc":"2.0","id":99999,"result":{}}`+"\n")
		return nil, nil, err
	})
	select {
	case <-changed:
	case <-time.After(20 * time.Second):
		t.Error("no notification")
	}
	_, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "new"})
	var e *observe.Error
	if !errors.As(err, &e) || e.Outcome != observe.InvalidEnvelope {
		t.Errorf("the only call in flight: %v", err)
	}
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "ok"}); err != nil {
		t.Error(err)
	}
	started := time.Now()
	if err := cs.Close(); err != nil || time.Since(started) > 5*time.Second {
		t.Errorf("closing took %v: %v", time.Since(started), err)
	}
	_ = ss.Close()
}

// TestStdioHandshake: a broken answer to the handshake ends Connect at once.
func TestStdioHandshake(t *testing.T) {
	serverIn, clientOut := io.Pipe()
	clientIn, serverOut := io.Pipe()
	go func() {
		buf := make([]byte, 1<<16)
		for {
			if _, err := serverIn.Read(buf); err != nil {
				return
			}
			_, _ = io.WriteString(serverOut, "starting\n{\"jsonrpc\":\"2.0\",\"id\":\n")
		}
	}()
	defer serverOut.Close()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	_, err := client.Connect(t.Context(), middleware.New(nil).IOTransport(clientIn, clientOut), nil)
	if e, ok := middleware.ErrorFrom(err); !ok || e.Outcome != observe.MalformedJSON {
		t.Errorf("error %v", err)
	}
}
