package observe_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/surecall/surecall/observe"
)

func recordOf(tool string) *observe.Record {
	return &observe.Record{Schema: observe.RecordSchema, Tool: tool, Outcome: observe.HTTPError, Layer: observe.LayerTransport,
		Delivery: observe.Unknown, Endpoint: "http://h/mcp", HTTPStatuses: []int{503}, Safety: "unsafe",
		Decision: observe.Choice{Action: "stop", Reason: "a reason", Rule: "default"}, Attempts: []observe.Attempt{{}}}
}

func TestTeeKeepsPanicsApart(t *testing.T) {
	var got []string
	keep := func(name string) observe.Handler {
		return func(_ context.Context, r *observe.Record) { got = append(got, name+" "+r.Tool) }
	}
	observe.Tee(keep("a"), nil, func(context.Context, *observe.Record) { panic("b") }, keep("c"))(t.Context(), recordOf("pay"))
	if strings.Join(got, ", ") != "a pay, c pay" {
		t.Errorf("got %q", got)
	}
}

// TestQueueNeverBlocks: a handler that hangs costs records, not calls.
func TestQueueNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, handled := make(chan struct{}), 0
		q := observe.NewQueue(func(ctx context.Context, _ *observe.Record) {
			<-release
			if ctx.Err() != nil {
				t.Error("the call's end reaches the handler")
			}
			if handled++; handled == 2 {
				panic("a handler")
			}
		}, 3)
		ctx, cancel := context.WithCancel(t.Context())
		q.Handle(ctx, recordOf("pay"))
		synctest.Wait() // the handler has it
		for range 5 {
			q.Handle(ctx, recordOf("pay"))
		}
		cancel()
		if q.Dropped() != 2 {
			t.Errorf("%d dropped, want 2", q.Dropped())
		}
		if err := q.Close(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("closing a queue that hangs: %v", err)
		}
		close(release)
		if err := q.Close(t.Context()); err != nil || handled != 4 {
			t.Errorf("closed: %v, %d handled", err, handled)
		}
		if q.Handle(t.Context(), recordOf("late")); q.Dropped() != 3 {
			t.Errorf("%d dropped after Close, want 3", q.Dropped())
		}
	})
}

func TestJSONLWritesLines(t *testing.T) {
	var out bytes.Buffer
	j := observe.NewJSONL(&out, &observe.JSONLOptions{Queue: 1000})
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 100 {
				j.Handle(t.Context(), recordOf("pay\nnot two lines"))
			}
		})
	}
	wg.Wait()
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines)+int(j.Lost()) != 1000 || j.Lost() != 0 {
		t.Errorf("%d lines, %d lost", len(lines), j.Lost())
	}
	for _, line := range lines {
		var r observe.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Schema != observe.RecordSchema {
			t.Fatalf("%v: %s", err, line)
		}
	}
}

// tearing writes half of every second line and fails.
type tearing struct {
	bytes.Buffer
	n int
}

func (w *tearing) Write(b []byte) (int, error) {
	if w.n++; w.n%2 == 1 {
		n, _ := w.Buffer.Write(b[:len(b)/2])
		return n, io.ErrShortWrite
	}
	return w.Buffer.Write(b)
}

// TestJSONLSurvivesErrors: a torn line does not take the next one with it.
func TestJSONLSurvivesErrors(t *testing.T) {
	w := &tearing{}
	var failures []error
	j := observe.NewJSONL(w, &observe.JSONLOptions{OnError: func(err error) { failures = append(failures, err) }})
	for range 6 {
		j.Handle(t.Context(), recordOf("pay"))
	}
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole := 0
	for line := range strings.SplitSeq(w.String(), "\n") {
		if json.Valid([]byte(line)) {
			whole++
		}
	}
	if whole != 3 || len(failures) != 3 || j.Lost() != 3 {
		t.Errorf("%d whole lines, %d errors, %d lost", whole, len(failures), j.Lost())
	}
}

func TestLevels(t *testing.T) {
	for _, o := range observe.Outcomes() {
		for _, d := range []observe.Delivery{observe.NotSent, observe.Refused, observe.Answered, observe.Unknown} {
			want := slog.LevelError
			switch {
			case o == observe.ToolSuccess, o == observe.InputRequired, o == observe.ExtensionResult:
				want = slog.LevelInfo
			case o == observe.ToolError, o == observe.JSONRPCError, d == observe.NotSent, d == observe.Refused:
				want = slog.LevelWarn
			}
			if got := (&observe.Record{Outcome: o, Delivery: d}).Level(); got != want {
				t.Errorf("%s %s: %s, want %s", o, d, got, want)
			}
		}
	}
}

func TestLog(t *testing.T) {
	var out bytes.Buffer
	handle := observe.Log(slog.New(slog.NewJSONHandler(&out, nil)))
	r := recordOf("pay")
	r.JSONRPC.ErrorCode, r.JSONRPC.ErrorMessage = new(int64(-32603)), "m"
	r.Ledger = &observe.LedgerRecord{Step: observe.LedgerSent, Settled: "unknown"}
	handle(t.Context(), r)
	var line struct {
		Level, Msg string
		Call       struct {
			Tool, Outcome string
			HTTP          struct{ Statuses []int }
			JSONRPC       struct{ ErrorCode int }
			Ledger        struct{ Step, Settled string }
			Decision      struct{ Action, Rule string }
		}
	}
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	c := line.Call
	if line.Level != "ERROR" || line.Msg != "HTTP 503 · JSON-RPC error -32603" || c.Tool != "pay" || c.HTTP.Statuses[0] != 503 ||
		c.JSONRPC.ErrorCode != -32603 || c.Ledger.Settled != "unknown" || c.Decision.Rule != "default" {
		t.Errorf("%s", out.String())
	}
}

// TestLogCostsNothingWhenDisabled: neither the headline nor the groups are made.
func TestLogCostsNothingWhenDisabled(t *testing.T) {
	handle := observe.Log(slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 1})))
	r, ctx := recordOf("pay"), t.Context()
	if n := testing.AllocsPerRun(100, func() { handle(ctx, r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
