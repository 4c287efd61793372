package middleware_test

import (
	"runtime"
	"sync"
	"time"
)

// stalls notes when this process did not get its turn: the machine was busy, or
// stood still. A call cannot be blamed for that.
type stalls struct {
	mu   sync.Mutex
	seen []stall
	stop chan struct{}
	done sync.WaitGroup
}

type stall struct{ from, to time.Time }

const (
	stallTick  = 5 * time.Millisecond
	stallTurns = 8 // goroutines that take part in a call's way back: net/http's, the SDK's, ours
)

func watchStalls() *stalls {
	s := &stalls{stop: make(chan struct{})}
	s.done.Go(s.watch)
	return s
}

// watch waits for a tick, and then for its turn as often as a call does that comes
// back. What takes much longer than the tick is a stall.
func (s *stalls) watch() {
	for last := time.Now(); ; {
		select {
		case <-s.stop:
			return
		case <-time.After(stallTick):
		}
		for range stallTurns {
			runtime.Gosched()
		}
		now := time.Now()
		if now.Sub(last) > 2*stallTick {
			s.add(stall{last, now})
		}
		last = now
	}
}

func (s *stalls) add(new stall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.seen); n > 0 && s.seen[n-1].to.Equal(new.from) {
		s.seen[n-1].to = new.to
		return
	}
	s.seen = append(s.seen, new)
}

func (s *stalls) close() {
	close(s.stop)
	s.done.Wait()
}

// within is how much of a span was stalled.
func (s *stalls) within(from, to time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum time.Duration
	for i := len(s.seen) - 1; i >= 0 && s.seen[i].to.After(from); i-- {
		begin, end := s.seen[i].from, s.seen[i].to
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		sum += max(0, end.Sub(begin))
	}
	return sum
}
