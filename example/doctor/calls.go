package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/observe"
)

// A finding is what a call came to. A call that was not made has no record.
type finding struct {
	request
	record *observe.Record
	result *mcp.CallToolResult
	err    error
}

func (f *finding) succeeded() bool { return f.record != nil && f.record.Outcome == observe.ToolSuccess }

// callAll makes the calls and reports each, in the order in which they were given.
// The error counts those that did not end in TOOL_SUCCESS.
func (d *doctor) callAll(ctx context.Context) error {
	var failed, unmade int
	for f := range d.findings(ctx) {
		switch {
		case f.record == nil:
			unmade++
		case !f.succeeded():
			failed++
		}
		d.report(&f)
	}
	return tally(len(d.calls), failed, unmade, interrupted(ctx))
}

// tally is the error for calls that did not end in TOOL_SUCCESS; nil if all did.
func tally(all, failed, unmade int, interrupted bool) error {
	var err error
	if failed > 0 {
		err = fmt.Errorf("%d of %d calls did not end in TOOL_SUCCESS", failed, all)
	}
	if unmade > 0 {
		err = both(err, fmt.Errorf("%d of %d calls were not made", unmade, all))
	}
	if interrupted && err != nil {
		err = both(errors.New("interrupted"), err)
	}
	return err
}

// findings makes the calls, as many at a time as asked, and yields what they came to
// in their order. One at a time, the next call waits until the last is reported.
func (d *doctor) findings(ctx context.Context) func(yield func(finding) bool) {
	if d.parallel == 1 {
		return func(yield func(finding) bool) {
			for _, r := range d.calls {
				if !yield(d.call(ctx, r)) {
					return
				}
			}
		}
	}
	return func(yield func(finding) bool) {
		done := make([]chan finding, len(d.calls))
		for i := range done {
			done[i] = make(chan finding, 1)
		}
		var next atomic.Int64
		var workers sync.WaitGroup
		defer workers.Wait()
		for range min(d.parallel, len(d.calls)) {
			workers.Go(func() {
				for i := next.Add(1) - 1; i < int64(len(d.calls)); i = next.Add(1) - 1 {
					done[i] <- d.call(ctx, d.calls[i])
				}
			})
		}
		for i := range done {
			if !yield(<-done[i]) {
				return
			}
		}
	}
}

// call makes one call.
func (d *doctor) call(ctx context.Context, r request) finding {
	if err := ctx.Err(); err != nil {
		return finding{request: r, err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	var record *observe.Record
	res, err := d.session.CallTool(context.WithValue(ctx, recordKey{}, &record), r.params())
	return finding{r, record, res, err}
}

// report prints a finding: on stdout a record or a text, on stderr nothing but what
// went wrong beside the call.
func (d *doctor) report(f *finding) {
	switch {
	case errors.Is(f.err, context.Canceled) && f.record == nil:
		// The tally says that we were interrupted.
	case f.record == nil:
		fmt.Fprintf(d.stderr, "doctor: %s was not called: %s\n", plain(f.name, maxName), plain(f.err.Error(), maxWords))
	case d.json:
		d.writeRecord(f.record)
	default:
		fmt.Fprint(d.stdout, tell(f))
	}
}

func (d *doctor) writeRecord(r *observe.Record) {
	line, err := json.Marshal(r)
	if err != nil {
		complain(d.stderr, fmt.Errorf("a record of %s: %w", plain(r.Tool, maxName), err))
		return
	}
	_, _ = d.stdout.Write(append(line, '\n'))
}

type recordKey struct{}

// keep is the stack's hook: it puts the record where the call waits for it.
func keep(ctx context.Context, r *observe.Record) {
	if slot, ok := ctx.Value(recordKey{}).(**observe.Record); ok {
		*slot = r
	}
}
