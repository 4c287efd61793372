package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// TestWordsOfACancelInAWait: a call that was sent is not told to be unsent.
func TestWordsOfACancelInAWait(t *testing.T) {
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		r := newRig(t, so, policy.Rule{Settings: policy.Settings{Retry: policy.Retry{Backoff: time.Hour, BackoffCap: time.Hour}, Limits: policy.Limits{Call: -1}}})
		r.server.Script("set_label", middlewaretest.Status(429))
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			waitUntil(t, func() bool { return r.server.Posts("set_label") == 1 })
			time.Sleep(50 * time.Millisecond)
			cancel()
		}()
		_, rec, err := r.callIn(ctx, "set_label", nil)
		if e := failure(t, err); e.Reason != "the caller gave up before the call was sent again" || !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if rec.Outcome != observe.Canceled || rec.Delivery != observe.Refused || r.server.Effects("set_label") != 0 {
			t.Errorf("record %+v", rec)
		}
	})
}

// TestWordsOfACancelDuringRefresh: nor is a definition told to be of no use that has not
// come.
func TestWordsOfACancelDuringRefresh(t *testing.T) {
	r := newRig(t, middlewaretest.Options{})
	r.server.SetTool(mirrored(fmt.Sprintf(region, "Region")))
	r.server.Script("pay", middlewaretest.StatusError(http.StatusBadRequest, -32020, "header mismatch"))
	r.server.AlwaysMethod("tools/list", middlewaretest.Hang())
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		waitUntil(t, func() bool { return r.server.Counts().Lists == 1 })
		cancel()
	}()
	_, rec, err := r.callIn(ctx, "pay", nil)
	if !errors.Is(err, context.Canceled) || rec.Outcome != observe.Canceled || rec.Delivery != observe.Refused ||
		rec.Decision.Reason != "the call ended while the tool's definition was fetched" || r.server.Posts("pay") != 1 {
		t.Errorf("err %v, record %+v", err, rec)
	}
}

// TestWordsOfARefusedResumption: how a stream closed is a fact of the stream, whatever
// became of resuming it.
func TestWordsOfARefusedResumption(t *testing.T) {
	for how, end := range map[string]middlewaretest.Ending{"ended": middlewaretest.EndComplete, "cut": middlewaretest.EndReset} {
		r := newRig(t, middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true}, never)
		r.server.Script("pay", middlewaretest.Stream("resumable", "id: 1\nretry: 100\ndata:\n\n", end))
		_, rec, err := r.call("pay", time.Minute)
		if rec.Outcome != observe.StreamIncomplete || rec.SSE == nil || rec.SSE.Close != how || rec.SSE.Resumed != 0 || r.server.Effects("pay") > 1 {
			t.Errorf("%s: err %v, stream %+v", how, err, rec.SSE)
		}
	}
}

// TestWordsOfADeadlineOnAStream: the record says how the stream closed, each time.
func TestWordsOfADeadlineOnAStream(t *testing.T) {
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		r := newRig(t, so, never, policy.Rule{Settings: policy.Settings{Breaker: policy.Breaker{Failures: 1000}, Key: policy.Key{Guard: -1}}})
		r.server.Always("pay", middlewaretest.Stream("stalled", ": hi\n\n", middlewaretest.EndSilent))
		for range 60 {
			_, rec, err := r.call("pay", 30*time.Millisecond)
			if rec.Outcome != observe.Timeout || rec.SSE != nil && rec.SSE.Close != "canceled" {
				t.Fatalf("err %v, stream %+v", err, rec.SSE)
			}
			if rec.SSE == nil && !strings.Contains(err.Error(), "deadline") {
				t.Errorf("err %v", err)
			}
		}
	})
}
