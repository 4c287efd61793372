package middleware

import (
	"context"
	"runtime"
	"time"
)

// detach calls f on a goroutine of its own and comes back when ctx ends even if f
// does not, which is then left behind: ok is false. A panic of f goes on with the
// caller, who may recover from it.
func detach[T any](ctx context.Context, f func() T) (value T, ok bool) {
	done := make(chan returned[T], 1)
	go func() {
		r := returned[T]{panicked: true}
		defer func() {
			if r.panicked {
				r.cause = recover()
			}
			done <- r
		}()
		r.value = f()
		r.panicked = false
	}()
	select {
	case r := <-done:
		return r.unpack(), true
	case <-ctx.Done():
	}
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.unpack(), true
	case <-timer.C:
		return value, false
	}
}

// returned is how a function came back.
type returned[T any] struct {
	value    T
	panicked bool
	cause    any // of the panic; nil for a goroutine that was ended
}

// unpack returns what the function returned, or goes on with its panic.
func (r *returned[T]) unpack() T {
	switch {
	case r.panicked && r.cause == nil:
		runtime.Goexit()
	case r.panicked:
		panic(r.cause)
	}
	return r.value
}
