package middleware

import (
	"net/http"

	"github.com/surecall/surecall/observe"
)

// attemptRecords tells the attempts for records and errors.
func (cl *call) attemptRecords() []observe.Attempt {
	records := make([]observe.Attempt, len(cl.attempts))
	n := 0
	for i := range cl.attempts {
		n += len(cl.attempts[i].posts)
	}
	posts := make([]observe.Sent, 0, n) // of all attempts
	for i := range cl.attempts {
		a := &cl.attempts[i]
		first := len(posts)
		posts = cl.tellSent(posts, a)
		records[i] = observe.Attempt{
			StartMs:    milliseconds(a.started.Sub(cl.started)),
			Outcome:    a.Outcome,
			Layer:      a.Outcome.Layer(),
			Delivery:   a.Delivery,
			Reason:     a.Reason,
			PostCount:  len(a.posts),
			Posts:      posts[first:len(posts):len(posts)],
			HTTPStatus: a.status(),
			Reconciled: string(a.reconciled),
			WaitMs:     waited(a.waits),
			Waits:      a.waits,
			DurationMs: milliseconds(a.took),
			Breaker:    a.breaker,
			Decision:   made(a.decision),
		}
		if a.waits == nil {
			records[i].Waits = []observe.Wait{}
		}
	}
	return records
}

func waited(waits []observe.Wait) float64 {
	sum := 0.0
	for _, w := range waits {
		sum += w.Ms
	}
	return sum
}

// tellSent adds the POSTs of an attempt.
func (cl *call) tellSent(sent []observe.Sent, a *attempt) []observe.Sent {
	for i := range a.posts {
		p := &a.posts[i]
		s := observe.Sent{
			StartMs:     milliseconds(p.Started.Sub(cl.started)),
			Waits:       p.Waits,
			Round:       p.Round,
			Origin:      observe.OriginNone,
			Outcome:     p.Verdict.Outcome,
			Delivery:    p.Verdict.Delivery,
			Status:      p.Status,
			ContentType: p.ContentType,
			Bytes:       p.Bytes,
			SSE:         p.Stream,
			Replays:     p.Replays,
			Healed:      p.Healed,
			Deviations:  p.Verdict.Deviations,
			DurationMs:  milliseconds(p.Took),
		}
		if i > 0 {
			s.Origin = resentBy(&a.posts[i-1], p)
		}
		if s.Outcome == "" {
			s.Delivery = observe.Unknown
		}
		if s.Waits == nil {
			s.Waits = []observe.Wait{}
		}
		if s.Deviations == nil {
			s.Deviations = []observe.Deviation{}
		}
		sent = append(sent, s)
	}
	return sent
}

// resentBy says who sent a request again, the same id once more: the SDK after it
// has authorized, or the HTTP client after a redirect that keeps method and body.
func resentBy(earlier, p *observe.Post) observe.Origin {
	switch {
	case p.ID != earlier.ID:
	case isAuth(earlier.Status):
		return observe.OriginSDK
	case earlier.Status == http.StatusTemporaryRedirect, earlier.Status == http.StatusPermanentRedirect:
		return observe.OriginNetHTTP
	}
	return observe.OriginNone
}
