package middleware

import (
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// verdict is what an attempt means to a breaker.
type verdict int

const (
	neutral verdict = iota
	success
	failure
)

var (
	errFailure = errors.New("failure")
	errNeutral = errors.New("neutral")
)

func (v verdict) err() error {
	switch v {
	case success:
		return nil
	case failure:
		return errFailure
	}
	return errNeutral
}

// breaker is a circuit breaker that knows when it will let a probe through. A
// neutral outcome of a probe frees its slot.
type breaker struct {
	two  *gobreaker.TwoStepCircuitBreaker[struct{}]
	open time.Duration
	tell func(from, to string) // or nil

	mu    sync.Mutex
	until time.Time
}

// newBreaker returns a breaker that tells its changes of state, or nil where the policy
// has none.
func newBreaker(name string, b policy.Breaker, tell func(from, to string)) *breaker {
	if b.Failures <= 0 {
		return nil
	}
	br := &breaker{open: b.Open, tell: tell}
	br.two = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:          name,
		MaxRequests:   1,
		Timeout:       b.Open,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return int(c.ConsecutiveFailures) >= b.Failures },
		OnStateChange: br.changed,
		IsExcluded:    func(err error) bool { return err == errNeutral },
	})
	return br
}

func (b *breaker) changed(_ string, from, to gobreaker.State) {
	if b.tell != nil {
		b.tell(from.String(), to.String())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.until = time.Time{}
	if to == gobreaker.StateOpen {
		b.until = time.Now().Add(b.open)
	}
}

// allow asks for admission. report must be called once, with the error of the
// attempt's verdict. Refused, wait is how long the breaker stays open: 0 while a
// probe is out.
func (b *breaker) allow() (report func(error), wait time.Duration, ok bool) {
	if b == nil {
		return func(error) {}, 0, true
	}
	report, err := b.two.Allow()
	if err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		return nil, max(time.Until(b.until), 0), false
	}
	return report, 0, true
}

// openFor reports whether the breaker is open, and for how long it stays so; it
// takes nothing.
func (b *breaker) openFor() (wait time.Duration, open bool) {
	if b == nil || b.two.State() != gobreaker.StateOpen {
		return 0, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(time.Until(b.until), 0), true
}

// graverState names the state of the breaker that lets less through; empty where
// there is none.
func graverState(breakers ...*breaker) string {
	var name string
	worst := gobreaker.State(-1)
	for _, b := range breakers {
		if b == nil {
			continue
		}
		if s := b.two.State(); s > worst {
			worst, name = s, s.String()
		}
	}
	return name
}

// toolVerdict is what an attempt says of the tool. A complete answer of any kind
// proves it alive; 5xx, timeouts and unusable answers count against it; what the
// caller did, what asks for other credentials or fewer calls, and what never
// reached the server says nothing.
func toolVerdict(a *attempt) verdict {
	switch o := a.Outcome; {
	case o.Answered():
		return success
	case a.Delivery == observe.NotSent:
		return neutral
	case o == observe.HTTPError && a.status() >= 500:
		return failure
	case o == observe.HTTPError, o == observe.Redirected, o == observe.SessionLost, o.Layer() == observe.LayerLocal && o != observe.Timeout:
		return neutral
	}
	return failure
}

// serverVerdict is what an attempt says of the server: only failing to connect
// counts against it.
func serverVerdict(a *attempt) verdict {
	switch {
	case a.Delivery != observe.NotSent && (a.status() != 0 || a.Outcome.Answered()):
		return success
	case a.failedToConnect():
		return failure
	}
	return neutral
}
