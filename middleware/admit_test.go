package middleware_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// never is a rule that repeats nothing, and lets equal calls pass.
var never = policy.Rule{Settings: policy.Settings{Retry: policy.Retry{Repeats: -1}, Key: policy.Key{Guard: -1}}}

func TestGateHoldsBackEveryCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(n int, p posted) (*http.Response, error) {
			if n == 1 {
				return jsonAnswer(429, "", "Retry-After", "5"), nil
			}
			return p.answer()
		}, never)
		defer b.session.Close()
		start := time.Now()
		if _, rec, _ := b.call("pay", 0); rec.Outcome != observe.HTTPError {
			t.Fatalf("record %+v", rec)
		}
		time.Sleep(time.Second)
		_, rec, err := b.call("send_mail", time.Second)
		var e *observe.Error
		if !errors.As(err, &e) || rec.Outcome != observe.RateLimited || rec.Delivery != observe.NotSent || e.RetryAfter != 4*time.Second {
			t.Errorf("err %v, record %+v", err, rec)
		}
		if time.Since(start) != time.Second {
			t.Error("a call that cannot wait did not end at once")
		}
		if _, rec, err = b.call("send_mail", time.Minute); err != nil || time.Since(start) != 5*time.Second {
			t.Errorf("after %v: err %v, record %+v", time.Since(start), err, rec)
		}
	})
}

func TestGateIsCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(n int, p posted) (*http.Response, error) {
			if n == 1 {
				return jsonAnswer(429, "", "Retry-After", "86400"), nil
			}
			return p.answer()
		})
		defer b.session.Close()
		start := time.Now()
		if _, rec, _ := b.call("pay", 0); rec.Outcome != observe.HTTPError || time.Since(start) != 0 {
			t.Fatalf("record %+v", rec)
		}
		if _, _, err := b.call("pay", 0); err != nil || time.Since(start) != time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

func TestGateScope(t *testing.T) {
	for scope, held := range map[policy.Gate]map[string]bool{
		policy.GateServer: {"pay": true, "send_mail": true},
		policy.GateTool:   {"pay": true, "send_mail": false},
		policy.GateOff:    {"pay": false, "send_mail": false},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(n int, p posted) (*http.Response, error) {
				if n == 1 {
					return jsonAnswer(429, "", "Retry-After", "5"), nil
				}
				return p.answer()
			}, never, policy.Rule{Settings: policy.Settings{Gate: scope}})
			defer b.session.Close()
			_, _, _ = b.call("pay", 0)
			for tool, want := range held {
				if _, rec, _ := b.call(tool, time.Second); (rec.Outcome == observe.RateLimited) != want {
					t.Errorf("%s: %s is %s", scope, tool, rec.Outcome)
				}
			}
			start := time.Now()
			if _, err := b.session.ListTools(t.Context(), nil); err != nil || (time.Since(start) == 5*time.Second) != (scope == policy.GateServer) {
				t.Errorf("%s: tools/list after %v: %v", scope, time.Since(start), err)
			}
		})
	}
}

func TestBreakerOpensProbesAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := true
		b := newBench(t, func(_ int, p posted) (*http.Response, error) {
			if broken {
				return jsonAnswer(500, "down"), nil
			}
			return p.answer()
		}, never)
		defer b.session.Close()
		for range 5 {
			_, _, _ = b.call("pay", 0)
		}
		time.Sleep(10 * time.Second)
		_, rec, err := b.call("pay", 0)
		var e *observe.Error
		if !errors.As(err, &e) || rec.Outcome != observe.BreakerOpen || rec.Delivery != observe.NotSent || e.RetryAfter != 20*time.Second {
			t.Fatalf("err %v, record %+v", err, rec)
		}
		if n := b.wire.count(); n != 5 {
			t.Errorf("%d POSTs", n)
		}
		if _, rec, _ := b.call("send_mail", 0); rec.Outcome != observe.HTTPError {
			t.Errorf("another tool: %+v", rec)
		}
		broken = false
		time.Sleep(20*time.Second + time.Millisecond)
		for range 3 {
			if _, rec, err := b.call("pay", 0); err != nil || rec.Breaker != "closed" {
				t.Errorf("after the probe: %v, breaker %s", err, rec.Breaker)
			}
		}
	})
}

func TestCanceledProbeFreesItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mode := "down"
		b := newBench(t, func(_ int, p posted) (*http.Response, error) {
			switch mode {
			case "down":
				return jsonAnswer(503, "down"), nil
			case "hang":
				return p.hang(true)
			}
			return p.answer()
		}, never)
		defer b.session.Close()
		for range 5 {
			_, _, _ = b.call("pay", 0)
		}
		mode = "hang"
		time.Sleep(31 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, rec, _ := b.callIn(ctx, "pay"); rec.Outcome != observe.Canceled {
			t.Fatalf("record %+v", rec)
		}
		mode = "up"
		if _, rec, err := b.call("pay", 0); err != nil || rec.Breaker != "closed" {
			t.Errorf("err %v, record %+v", err, rec)
		}
	})
}

// TestBreakerIgnores: what says nothing about the tool's health, and what proves
// it, keep the breaker closed.
func TestBreakerIgnores(t *testing.T) {
	answer := func(status int, body string) func(posted) (*http.Response, error) {
		return func(posted) (*http.Response, error) { return jsonAnswer(status, body), nil }
	}
	for name, call := range map[string]func(posted) (*http.Response, error){
		"tool error": func(p posted) (*http.Response, error) {
			return jsonAnswer(200, `{"jsonrpc":"2.0","id":`+string(p.id)+`,"result":{"content":[],"isError":true}}`), nil
		},
		"json-rpc error": func(p posted) (*http.Response, error) {
			return jsonAnswer(200, `{"jsonrpc":"2.0","id":`+string(p.id)+`,"error":{"code":-32603,"message":"m"}}`), nil
		},
		"401": answer(401, ""),
		"403": answer(403, ""),
		"404": answer(404, "no"),
		"429": answer(429, ""),
		"redirect": func(posted) (*http.Response, error) {
			return jsonAnswer(302, "", "Location", "http://other.test/"), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, func(_ int, p posted) (*http.Response, error) { return call(p) }, never)
				defer b.session.Close()
				for range 12 {
					if _, rec, _ := b.call("pay", 0); rec.Breaker != "closed" {
						t.Fatalf("record %+v", rec)
					}
				}
				if n := b.wire.count(); n != 12 {
					t.Errorf("%d POSTs of 12 calls", n)
				}
			})
		})
	}
	t.Run("canceled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(_ int, p posted) (*http.Response, error) { return p.hang(true) }, never)
			defer b.session.Close()
			for range 12 {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				if _, rec, _ := b.callIn(ctx, "pay"); rec.Outcome != observe.Canceled || rec.Breaker != "closed" {
					t.Fatalf("record %+v", rec)
				}
			}
		})
	})
}

// TestBreakerCounts: 5xx, timeouts and unusable answers count against the tool.
func TestBreakerCounts(t *testing.T) {
	for name, call := range map[string]func(posted) (*http.Response, error){
		"502":       func(posted) (*http.Response, error) { return jsonAnswer(502, ""), nil },
		"malformed": func(posted) (*http.Response, error) { return jsonAnswer(200, "{"), nil },
		"empty":     func(posted) (*http.Response, error) { return jsonAnswer(200, ""), nil },
		"reset": func(p posted) (*http.Response, error) {
			p.connect(true)
			return nil, errors.New("reset")
		},
		"timeout": func(p posted) (*http.Response, error) { return p.hang(true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, func(_ int, p posted) (*http.Response, error) { return call(p) }, never)
				defer b.session.Close()
				for range 5 {
					_, _, _ = b.call("pay", time.Second)
				}
				if _, rec, _ := b.call("pay", time.Second); rec.Outcome != observe.BreakerOpen {
					t.Errorf("record %+v", rec)
				}
				if _, rec, _ := b.call("send_mail", time.Second); rec.Outcome == observe.BreakerOpen {
					t.Error("the other tool's breaker is open too")
				}
			})
		})
	}
}

func TestServerBreakerCountsFailingToConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(_ int, p posted) (*http.Response, error) {
			p.connect(false)
			return nil, errors.New("refused")
		}, never)
		defer b.session.Close()
		for i := range 5 {
			if _, rec, _ := b.call([]string{"pay", "send_mail"}[i%2], 0); rec.Outcome != observe.NetworkError || rec.Delivery != observe.NotSent {
				t.Fatalf("record %+v", rec)
			}
		}
		if _, rec, _ := b.call("set_label", 0); rec.Outcome != observe.BreakerOpen || b.wire.count() != 5 {
			t.Errorf("%d POSTs, record %+v", b.wire.count(), rec)
		}
	})
}

// TestBreakerOpensBetweenAttempts: the call ends with its last real failure.
func TestBreakerOpensBetweenAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(int, posted) (*http.Response, error) { return jsonAnswer(503, "down"), nil },
			policy.Rule{Settings: policy.Settings{Breaker: policy.Breaker{Failures: 2}}})
		defer b.session.Close()
		_, rec, err := b.call("read_weather", 0)
		var e *observe.Error
		if !errors.As(err, &e) || e.Status != 503 || rec.Outcome != observe.HTTPError || len(rec.Attempts) != 2 || b.wire.count() != 2 {
			t.Errorf("err %v, record %+v", err, rec)
		}
		if rec.Decision.Action != "stop" || rec.Delivery != observe.Unknown {
			t.Errorf("decision %+v, delivery %s", rec.Decision, rec.Delivery)
		}
	})
}

func TestLimiter(t *testing.T) {
	limited := func(l policy.Limiter) policy.Rule {
		return policy.Rule{Tool: "pay", Settings: policy.Settings{Limiter: l}}
	}
	ok := func(_ int, p posted) (*http.Response, error) { return p.answer() }
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, ok, limited(policy.Limiter{Rate: 1}))
		defer b.session.Close()
		start := time.Now()
		for range 3 {
			if _, _, err := b.call("pay", 0); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("three calls took %v", took)
		}
		_, rec, err := b.call("pay", 500*time.Millisecond)
		var e *observe.Error
		if !errors.As(err, &e) || rec.Outcome != observe.RateLimited || e.RetryAfter != time.Second || time.Since(start) != 2*time.Second {
			t.Errorf("err %v, record %+v", err, rec)
		}
		if _, _, err := b.call("pay", 5*time.Second); err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("the refused call kept its token: %v, %v", time.Since(start), err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, ok, limited(policy.Limiter{Rate: 1, NoWait: new(true)}))
		defer b.session.Close()
		_, _, _ = b.call("pay", 0)
		if _, rec, _ := b.call("pay", 0); rec.Outcome != observe.RateLimited || b.wire.count() != 1 {
			t.Errorf("record %+v", rec)
		}
	})
}

// TestGateIsAskedAgain: a call that has waited, for an older closure or for a token,
// does not pass a gate that closed meanwhile.
func TestGateIsAskedAgain(t *testing.T) {
	for name, rule := range map[string]policy.Rule{
		"gate":    {},
		"limiter": {Tool: "send_mail", Settings: policy.Settings{Limiter: policy.Limiter{Rate: 0.5}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, func(n int, p posted) (*http.Response, error) {
					switch p.params.Meta[idempotency.MetaKey] {
					case "short":
						return jsonAnswer(429, "", "Retry-After", "2"), nil
					case "long": // on its way when the gate closed
						time.Sleep(time.Second)
						return jsonAnswer(429, "", "Retry-After", "30"), nil
					}
					return p.answer()
				}, never, rule)
				defer b.session.Close()
				start := time.Now()
				go b.callIn(idempotency.WithKey(context.Background(), "long"), "pay")
				synctest.Wait()
				if name == "gate" {
					_, _, _ = b.callIn(idempotency.WithKey(t.Context(), "short"), "pay")
				} else {
					_, _, _ = b.call("send_mail", 0) // takes the token
				}
				sent := make(chan time.Duration, 1)
				go func() {
					_, _, _ = b.call("send_mail", 0)
					sent <- time.Since(start)
				}()
				if at := <-sent; at < 30*time.Second {
					t.Errorf("sent after %v", at)
				}
			})
		})
	}
}

func TestDoNotRetryWins(t *testing.T) {
	for _, header := range []string{"Stripe-Should-Retry", "X-Should-Retry"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(int, posted) (*http.Response, error) { return jsonAnswer(503, "", header, "false"), nil })
			defer b.session.Close()
			_, rec, _ := b.call("read_weather", 0)
			if b.wire.count() != 1 || rec.Decision.Action != "stop" {
				t.Errorf("%s: %d POSTs, %+v", header, b.wire.count(), rec.Decision)
			}
		})
	}
}
