package middleware

import (
	"context"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// onePost is what the SDK and the Transport leave behind of a call with one good POST.
func onePost(ctx context.Context, _ string, _ mcp.Request) (mcp.Result, error) {
	if ev, _ := ctx.Value(evidenceKey{}).(*evidence); ev != nil {
		p := &post{evidence: ev, envelope: envelope{id: "7"}, tool: ev.tool, round: 1}
		p.seen = observe.Post{ID: "7", Status: 200, ContentType: "application/json", Started: time.Now(), Round: 1}
		ev.add(p)
		ev.conclude(p, observe.Verdict{Outcome: observe.ToolSuccess, Delivery: observe.Answered, ResultType: "complete", EchoedID: true}, 0)
	}
	return goodResult, nil
}

var goodResult = &mcp.CallToolResult{Content: []mcp.Content{}}

// BenchmarkRecord tells what records cost beside the middlewares alone, of a call with
// one POST: "off" and "on" differ by Options.OnRecord. "nothing" is the handler by
// itself, and "disabled" the Record middleware around it with no handler of records.
func BenchmarkRecord(b *testing.B) {
	keep := func(context.Context, *observe.Record) {}
	for name, opts := range map[string]*Options{
		"off": {NoLedger: true}, "on": {NoLedger: true, OnRecord: keep},
		"ledger-off": {}, "ledger-on": {OnRecord: keep},
		"shadow-on": {Shadow: true, NoLedger: true, OnRecord: keep},
	} {
		b.Run(name, func(b *testing.B) {
			opts.Policy = &policy.Policy{}
			benchCall(b, chain(New(opts), onePost))
		})
	}
	b.Run("beside", func(b *testing.B) {
		// In turn, in short batches, of which the fastest count: the machine is shared.
		off, on := chain(New(&Options{NoLedger: true}), onePost), chain(New(&Options{NoLedger: true, OnRecord: keep}), onePost)
		disabled, bare := Record(nil)(onePost), onePost
		least := map[string]time.Duration{}
		for b.Loop() {
			for name, call := range map[string]mcp.MethodHandler{"off": off, "on": on, "disabled": disabled, "bare": bare} {
				began := time.Now()
				for range 100 {
					oneCall(b, call)
				}
				if took := time.Since(began); least[name] == 0 || took < least[name] {
					least[name] = took
				}
			}
		}
		b.ReportMetric(float64((least["on"]-least["off"]).Nanoseconds())/100, "record-ns/call")
		b.ReportMetric(float64((least["disabled"]-least["bare"]).Nanoseconds())/100, "disabled-ns/call")
		b.ReportMetric(float64((least["off"]-least["bare"]).Nanoseconds())/100, "middlewares-ns/call")
		b.ReportMetric(0, "ns/op")
	})
	b.Run("nothing", func(b *testing.B) { benchCall(b, onePost) })
	b.Run("disabled", func(b *testing.B) { benchCall(b, Record(nil)(onePost)) })
}

func benchCall(b *testing.B, call mcp.MethodHandler) {
	b.ReportAllocs()
	for b.Loop() {
		oneCall(b, call)
	}
}

var payParams = &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"order": 7}}

func oneCall(b *testing.B, call mcp.MethodHandler) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := call(ctx, methodCallTool, &mcp.ClientRequest[mcp.Params]{Params: payParams}); err != nil {
		b.Fatal(err)
	}
}

// TestRecordAllocations: a record costs ten allocations at most, and none where nobody
// wants it.
func TestRecordAllocations(t *testing.T) {
	count := func(opts *Options) float64 {
		opts.NoLedger = true
		call := chain(New(opts), onePost)
		params := &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"order": 7}}
		return testing.AllocsPerRun(200, func() {
			_, _ = call(t.Context(), methodCallTool, &mcp.ClientRequest[mcp.Params]{Params: params})
		})
	}
	off, on := count(&Options{}), count(&Options{OnRecord: func(context.Context, *observe.Record) {}})
	if on-off > 10 {
		t.Errorf("%v allocations for a record", on-off)
	}
	bare := testing.AllocsPerRun(200, func() { _, _ = onePost(t.Context(), methodCallTool, nil) })
	wrapped := Record(nil)(onePost)
	disabled := testing.AllocsPerRun(200, func() { _, _ = wrapped(t.Context(), methodCallTool, nil) })
	if disabled > bare {
		t.Errorf("%v allocations for nothing", disabled-bare)
	}
}
