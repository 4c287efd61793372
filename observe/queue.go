package observe

import (
	"context"
	"sync"
	"sync/atomic"
)

// defaultQueue is how many records wait where nobody says.
const defaultQueue = 1024

// A Queue stands before a handler that may be slow, or hang: handing over a record
// never blocks. It holds a bounded number of records; what comes when it is full is
// dropped and counted. It is safe for concurrent use and must be closed.
type Queue struct {
	handle  Handler
	waiting chan queued
	idle    chan struct{} // closed when the goroutine has ended
	dropped atomic.Int64

	mu     sync.Mutex
	closed bool
}

type queued struct {
	ctx    context.Context
	record *Record
}

// NewQueue starts a goroutine that hands records to a handler, one after the other,
// with the values of their calls' contexts but without their ends. size is how many
// records can wait; 0 or less is 1024.
func NewQueue(handle Handler, size int) *Queue {
	if size <= 0 {
		size = defaultQueue
	}
	q := &Queue{handle: handle, waiting: make(chan queued, size), idle: make(chan struct{})}
	go q.run()
	return q
}

func (q *Queue) run() {
	defer close(q.idle)
	for n := range q.waiting {
		safely(n.ctx, q.handle, n.record)
	}
}

// Handle is a [Handler]. After Close it drops everything.
func (q *Queue) Handle(ctx context.Context, r *Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		select {
		case q.waiting <- queued{context.WithoutCancel(ctx), r}:
			return
		default:
		}
	}
	q.dropped.Add(1)
}

// Dropped is how many records were not handed on.
func (q *Queue) Dropped() int64 { return q.dropped.Load() }

// Close takes no more records and waits until those that wait are handled, or until
// ctx ends, whose error it then returns: what is left is handled all the same. It may
// be called again.
func (q *Queue) Close(ctx context.Context) error {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.waiting)
	}
	q.mu.Unlock()
	select {
	case <-q.idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
