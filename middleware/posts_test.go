package middleware_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
)

// TestPostsOfAnAttempt: a record tells the POSTs of an attempt apart, and who sent one
// again: the rounds of a call, and a redirect that net/http has followed.
func TestPostsOfAnAttempt(t *testing.T) {
	t.Run("redirect", func(t *testing.T) {
		for _, version := range []string{middlewaretest.Version20251125, middlewaretest.Version20260728} {
			r := newRig(t, middlewaretest.Options{Version: version})
			r.server.Script("pay", middlewaretest.Redirect(307, false))
			_, rec, err := r.call("pay", 20*time.Second)
			if err != nil || rec.RetryOrigin != observe.OriginNetHTTP || len(rec.Attempts) != 1 || r.server.Effects("pay") != 1 {
				t.Fatalf("%v, %+v", err, rec)
			}
			posts := rec.Attempts[0].Posts
			if len(posts) != 2 || posts[0].Status != 307 || posts[0].Origin != observe.OriginNone || posts[0].Delivery != observe.Refused ||
				posts[1].Status != 200 || posts[1].Origin != observe.OriginNetHTTP || posts[1].Round != 1 {
				t.Errorf("posts %+v", posts)
			}
		}
	})
	t.Run("rounds", func(t *testing.T) {
		r := newRig(t, middlewaretest.Options{})
		r.server.Script("ask", middlewaretest.SecondRound(middlewaretest.Status(503)))
		_, rec, _ := r.call("ask", 20*time.Second)
		if len(rec.Attempts) != 1 || rec.RetryOrigin != observe.OriginNone {
			t.Fatalf("%+v", rec)
		}
		posts := rec.Attempts[0].Posts
		if len(posts) != 2 || posts[0].Outcome != observe.InputRequired || posts[0].Round != 1 || posts[1].Outcome != observe.HTTPError || posts[1].Round != 2 || posts[1].Origin != observe.OriginNone {
			t.Errorf("posts %+v", posts)
		}
	})
	t.Run("bytes, events and times", func(t *testing.T) {
		r := newRig(t, middlewaretest.Options{Stream: true})
		_, rec, err := r.call("progress", 20*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		p := rec.Attempts[0].Posts[0]
		if p.Bytes < 50 || p.SSE == nil || p.SSE.Events < 1 || p.ContentType != "text/event-stream" || p.DurationMs <= 0 || p.StartMs > rec.DurationMs ||
			p.StartMs < rec.Attempts[0].StartMs || p.DurationMs > rec.Attempts[0].DurationMs {
			t.Errorf("%+v of %+v", p, rec.Attempts[0])
		}
		if !slices.Equal(rec.HTTPStatuses, []int{200}) {
			t.Errorf("%v", rec.HTTPStatuses)
		}
	})
	t.Run("unsent", func(t *testing.T) {
		b := newBench(t, func(_ int, p posted) (*http.Response, error) {
			p.connect(false)
			return nil, errors.New("connection refused")
		}, noRepeats)
		defer b.session.Close()
		_, rec, err := b.call("pay", 20*time.Second)
		if err == nil || len(rec.Attempts) != 1 || len(rec.Attempts[0].Posts) != 1 || rec.Attempts[0].Posts[0].Delivery != observe.NotSent {
			t.Fatalf("%v, %+v", err, rec)
		}
		if rec.Ledger == nil || rec.Ledger.Step != observe.LedgerBegun {
			t.Errorf("ledger %+v, though nothing was sent", rec.Ledger)
		}
	})
}
