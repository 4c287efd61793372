package observe

import (
	"context"
	"encoding/json"
	"io"
	"sync/atomic"
)

// JSONLOptions configure a [JSONL]. A nil pointer and the zero value mean the
// defaults.
type JSONLOptions struct {
	// Queue is how many records can wait to be written. Default 1024.
	Queue int
	// OnError is told what kept a record from being written, on the writer's
	// goroutine. Nil: it is counted alone.
	OnError func(error)
}

// A JSONL writes records as JSON lines, one record a line, each with one Write. It
// stands behind a [Queue], so that a full disk or a hanging file system neither
// delays nor fails a call: records are dropped instead, and counted. It rotates
// nothing: give it a writer that does. It is safe for concurrent use and must be
// closed.
type JSONL struct {
	queue   *Queue
	w       io.Writer
	onError func(error)
	torn    bool // a line was begun and not ended; the goroutine's own
	failed  atomic.Int64
}

// NewJSONL returns a writer of records; opts may be nil. It does not close w.
func NewJSONL(w io.Writer, opts *JSONLOptions) *JSONL {
	var o JSONLOptions
	if opts != nil {
		o = *opts
	}
	j := &JSONL{w: w, onError: o.OnError}
	j.queue = NewQueue(j.write, o.Queue)
	return j
}

// Handle is a [Handler]. It never blocks.
func (j *JSONL) Handle(ctx context.Context, r *Record) { j.queue.Handle(ctx, r) }

// Lost is how many records were not written: dropped, because too many waited, or
// failed.
func (j *JSONL) Lost() int64 { return j.queue.Dropped() + j.failed.Load() }

// Close writes what waits, at most until ctx ends. Close the writer after it.
func (j *JSONL) Close(ctx context.Context) error { return j.queue.Close(ctx) }

func (j *JSONL) write(_ context.Context, r *Record) {
	written := false
	defer func() { // also for a writer that panics
		if !written {
			j.failed.Add(1)
		}
	}()
	line, err := json.Marshal(r)
	if err != nil {
		j.fail(err)
		return
	}
	line = append(line, '\n')
	if j.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := j.w.Write(line)
	if err == nil && n < len(line) {
		err = io.ErrShortWrite
	}
	j.torn = err != nil && (n > 0 || j.torn)
	if written = err == nil; !written {
		j.fail(err)
	}
}

func (j *JSONL) fail(err error) {
	if j.onError != nil {
		j.onError(err)
	}
}
