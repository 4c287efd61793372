package middleware_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// unavailable answers 503 n times and then well.
func unavailable(n int) func(int, posted) (*http.Response, error) {
	return func(i int, p posted) (*http.Response, error) {
		if i <= n {
			return jsonAnswer(503, "down"), nil
		}
		return p.answer()
	}
}

func TestReadIsRepeatedWithOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, unavailable(2))
		defer b.session.Close()
		start := time.Now()
		_, rec, err := b.call("read_weather", 0)
		if err != nil || rec.Outcome != observe.ToolSuccess || len(rec.Attempts) != 3 || rec.RetryOrigin != observe.OriginMiddleware {
			t.Fatalf("err %v, record %+v", err, rec)
		}
		if waited := time.Since(start); waited > 600*time.Millisecond {
			t.Errorf("waited %v, more than 200 ms + 400 ms of backoff", waited)
		}
		keys, ids := map[any]bool{}, map[string]bool{}
		for _, p := range b.wire.posts {
			keys[p.params.Meta[idempotency.MetaKey]] = true
			ids[string(p.id)] = true
		}
		if len(keys) != 1 || keys[nil] || len(ids) != 3 {
			t.Errorf("%d keys and %d ids in 3 POSTs", len(keys), len(ids))
		}
	})
}

func TestUnsafeIsNotRepeatedOn503(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, unavailable(1))
		defer b.session.Close()
		_, rec, err := b.call("pay", 0)
		if b.wire.count() != 1 || rec.Outcome != observe.HTTPError || rec.Delivery != observe.Unknown || rec.Decision.Action != "stop" {
			t.Fatalf("%d POSTs, record %+v", b.wire.count(), rec)
		}
		var e *observe.Error
		if !errors.As(err, &e) || e.Status != 503 || e.RepeatSafe {
			t.Errorf("error %+v", e)
		}
	})
}

func TestThrottledWaitsForTheServer(t *testing.T) {
	throttled := func(after string) func(int, posted) (*http.Response, error) {
		return func(n int, p posted) (*http.Response, error) {
			if n == 1 {
				return jsonAnswer(429, `{"note":"daily cap"}`, "Retry-After", after), nil
			}
			return p.answer()
		}
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, throttled("1"))
		defer b.session.Close()
		if _, rec, err := b.call("pay", 5*time.Second); err != nil || rec.Outcome != observe.ToolSuccess {
			t.Fatalf("err %v, record %+v", err, rec)
		}
		if gap := b.wire.posts[1].at.Sub(b.wire.posts[0].at); gap < time.Second {
			t.Errorf("sent again after %v", gap)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, throttled("30"))
		defer b.session.Close()
		start := time.Now()
		_, rec, err := b.call("pay", 2*time.Second)
		var e *observe.Error
		if !errors.As(err, &e) || e.Status != 429 || e.RetryAfter != 30*time.Second || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if time.Since(start) != 0 || rec.RetryAfterMs == nil || *rec.RetryAfterMs != 30_000 {
			t.Errorf("after %v, record %+v", time.Since(start), rec)
		}
	})
}

func TestCancelDuringTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, unavailable(9), policy.Rule{Tool: "read_*", Settings: policy.Settings{Retry: policy.Retry{Backoff: 5 * time.Minute, BackoffCap: 5 * time.Minute}}})
		defer b.session.Close()
		ctx, cancel := context.WithCancel(t.Context())
		var canceled time.Time
		time.AfterFunc(time.Millisecond, func() { canceled = time.Now(); cancel() })
		_, rec, err := b.callIn(ctx, "read_weather")
		if !errors.Is(err, context.Canceled) || rec.Outcome != observe.Canceled || rec.Delivery != observe.Unknown {
			t.Errorf("err %v, record %+v", err, rec)
		}
		if late := time.Since(canceled); late > 20*time.Millisecond || b.wire.count() != 1 {
			t.Errorf("%v after the cancel, %d POSTs", late, b.wire.count())
		}
	})
}

func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		limits   policy.Limits
		call     func(int, posted) (*http.Response, error)
		delivery observe.Delivery
		after    time.Duration
	}{
		"connect": {policy.Limits{}, func(_ int, p posted) (*http.Response, error) { return p.hang(false) }, observe.NotSent, 10 * time.Second},
		"headers": {policy.Limits{Headers: time.Second}, func(_ int, p posted) (*http.Response, error) {
			p.connect(true)
			p.wrote()
			<-p.req.Context().Done()
			return nil, context.Cause(p.req.Context())
		}, observe.Unknown, time.Second},
		"attempt": {policy.Limits{Attempt: 3 * time.Second}, func(_ int, p posted) (*http.Response, error) { return p.hang(true) }, observe.Unknown, 3 * time.Second},
		"call":    {policy.Limits{}, func(_ int, p posted) (*http.Response, error) { return p.hang(true) }, observe.Unknown, 10 * time.Minute},
		"silence": {policy.Limits{}, func(_ int, p posted) (*http.Response, error) {
			return &http.Response{StatusCode: 200, ContentLength: -1, Header: http.Header{"Content-Type": {"text/event-stream"}},
				Body: silentBody{p.req.Context()}}, nil
		}, observe.Unknown, 5 * time.Minute},
		"silence of json": {policy.Limits{Silence: time.Minute}, func(_ int, p posted) (*http.Response, error) {
			return &http.Response{StatusCode: 200, ContentLength: -1, Header: http.Header{"Content-Type": {"application/json"}},
				Body: silentBody{p.req.Context()}}, nil
		}, observe.Unknown, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hung := true
				b := newBench(t, func(n int, p posted) (*http.Response, error) {
					if !hung {
						return p.answer()
					}
					return c.call(n, p)
				}, policy.Rule{Tool: "pay", Settings: policy.Settings{Limits: c.limits, Retry: policy.Retry{Repeats: -1}}})
				defer b.session.Close()
				start := time.Now()
				_, rec, err := b.call("pay", 0)
				if rec.Outcome != observe.Timeout || rec.Delivery != c.delivery {
					t.Errorf("record %+v", rec)
				}
				if took := time.Since(start); took < c.after || took > c.after+20*time.Millisecond {
					t.Errorf("took %v, want %v", took, c.after)
				}
				if errors.Is(err, context.DeadlineExceeded) {
					t.Error("a limit of ours passes for the caller's deadline")
				}
				hung = false
				if _, _, err := b.call("read_weather", 0); err != nil {
					t.Errorf("a call afterwards: %v", err)
				}
			})
		})
	}
}

// silentBody never gives a byte.
type silentBody struct{ ctx context.Context }

func (b silentBody) Read([]byte) (int, error) { <-b.ctx.Done(); return 0, context.Cause(b.ctx) }
func (b silentBody) Close() error             { return nil }

func TestConnectLimitIsRepeatedForUnsafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(n int, p posted) (*http.Response, error) {
			if n == 1 {
				return p.hang(false)
			}
			return p.answer()
		})
		defer b.session.Close()
		if _, rec, err := b.call("pay", 0); err != nil || len(rec.Attempts) != 2 || rec.Attempts[0].Delivery != observe.NotSent {
			t.Errorf("err %v, record %+v", err, rec)
		}
	})
}

// TestAnswerReadWhole: the SDK reports the dead context although the whole answer
// had come (go-sdk v1.8.0); the answer stands.
func TestAnswerReadWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := newBench(t, func(_ int, p posted) (*http.Response, error) {
			resp, err := p.answer()
			resp.Body = closing{resp.Body, cancel}
			return resp, err
		})
		defer b.session.Close()
		res, rec, err := b.callIn(ctx, "pay")
		if err != nil || rec.Outcome != observe.ToolSuccess || rec.Delivery != observe.Answered || len(res.Content) != 1 {
			t.Errorf("err %v, record %+v", err, rec)
		}
	})
}

// closing calls a function when the body is closed.
type closing struct {
	io.ReadCloser
	then func()
}

func (c closing) Close() error { c.then(); return c.ReadCloser.Close() }

// TestUnwrapHidesWhatFrameworksRepeatOn: frameworks run a call again on io.EOF. They
// may see it only where that cannot double an effect; for a keyed tool that is so
// only with a key that comes from above, for theirs would be another one.
func TestUnwrapHidesWhatFrameworksRepeatOn(t *testing.T) {
	for _, c := range []struct {
		tool     string
		key      string
		obtained bool
		shown    bool
	}{
		{"pay", "", true, false},
		{"pay", "k", true, false},
		{"pay", "", false, true},
		{"read_weather", "", true, true},
		{"pay_keyed", "", true, false},
		{"pay_keyed", "", false, true},
		{"pay_keyed", "k", true, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(_ int, p posted) (*http.Response, error) {
				p.connect(c.obtained)
				return nil, io.EOF
			}, never)
			defer b.session.Close()
			_, _, err := b.callIn(idempotency.WithKey(t.Context(), c.key), c.tool)
			var e *observe.Error
			if !errors.As(err, &e) || !errors.Is(e.Cause(), io.EOF) {
				t.Fatalf("%+v: the cause is lost: %v", c, err)
			}
			if got := errors.Is(err, io.EOF); got != c.shown || e.RepeatSafe != c.shown {
				t.Errorf("%+v: errors.Is(err, io.EOF) is %t, repeat safe %t", c, got, e.RepeatSafe)
			}
		})
	}
}

func TestRetryBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(int, posted) (*http.Response, error) { return jsonAnswer(503, "down"), nil },
			policy.Rule{Tool: "read_*", Settings: policy.Settings{Retry: policy.Retry{Budget: 3}, Breaker: policy.Breaker{Failures: -1}}})
		defer b.session.Close()
		for range 4 {
			_, _, _ = b.call("read_weather", 0)
		}
		if n := b.wire.count(); n != 4+3 {
			t.Errorf("%d POSTs, want 4 calls and 3 repeats", n)
		}
	})
}
