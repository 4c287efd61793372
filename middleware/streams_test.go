package middleware_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

const sse = "text/event-stream"

// TestStreamsEndAtOnce: a stream that ends, is cut or carries a broken event gives its
// outcome at once, and the record tells what came.
func TestStreamsEndAtOnce(t *testing.T) {
	for name, want := range map[string]observe.Stream{
		"sse-empty":                 {Close: "ended"},
		"sse-comment-only":          {Close: "ended"},
		"sse-notification-only":     {Events: 1, Close: "ended"},
		"sse-cut-event":             {Close: "cut"},
		"sse-ends-in-event":         {Close: "ended"},
		"sse-no-blank-line":         {Close: "ended"},
		"sse-reset":                 {Close: "cut"},
		"sse-progress-then-cut":     {Events: 1, Close: "cut"},
		"sse-progress-then-reset":   {Events: 1, Close: "cut"},
		"sse-malformed":             {Events: 1, Close: "complete"},
		"sse-wrong-id-stays-open":   {Events: 1, Close: "complete"},
		"sse-content-text":          {Events: 1, Close: "complete"},
		"sse-plain":                 {Events: 1, Close: "complete", Terminal: true},
		"sse-progress":              {Events: 3, Close: "complete", Terminal: true},
		"sse-stays-open":            {Events: 1, Close: "complete", Terminal: true},
		"sse-tool-error":            {Events: 1, Close: "complete", Terminal: true},
		"sse-error":                 {Events: 1, Close: "complete", Terminal: true},
		"event-envelope-two-errors": {Events: 1, Close: "complete"},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, so middlewaretest.Options) {
				r := newRig(t, so, never)
				beside := r.beside()
				f := catalogued(t, name)
				r.server.Script("pay", f)
				_, rec, err := r.call("pay", time.Minute)
				expected := f.Expected(&so)
				if string(rec.Outcome) != expected.Outcome || string(rec.Delivery) != expected.Delivery || rec.DurationMs > 2000 {
					t.Errorf("err %v, record %+v", err, rec)
				}
				if rec.SSE == nil || *rec.SSE != want || !slices.Equal(rec.ContentTypes, []string{sse}) {
					t.Errorf("stream %+v, content types %v", rec.SSE, rec.ContentTypes)
				}
				if r.server.Posts("pay") != 1 || r.server.Effects("pay") != 1 || r.server.Counts().Gets > gets(so) {
					t.Errorf("%d POSTs, %d effects, %+v", r.server.Posts("pay"), r.server.Effects("pay"), r.server.Counts())
				}
				if err := <-beside; err != nil {
					t.Errorf("the call in flight beside it: %v", err)
				}
				r.stillServes(f)
			})
		})
	}
}

// gets is the number of GETs that the SDK makes by itself: for the standalone stream.
func gets(so middlewaretest.Options) int {
	if so.Version == middlewaretest.Version20251125 {
		return 1
	}
	return 0
}

// TestResumption: a stream with event ids is asked for the rest of it, which is neither
// an outcome nor silence until that fails; a resumption that fails ends the call, not
// the session. 2026-07-28 has none.
func TestResumption(t *testing.T) {
	for name, resumed := range map[string]int{
		"sse-resume-delivers": 1, "sse-resume-delivers-after-end": 1,
		"sse-resume-nothing": 1, "sse-resume-405": 0, "sse-resume-404": 0,
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, so middlewaretest.Options) {
				r := newRig(t, so, never, policy.Rule{Tool: "pay", Settings: policy.Settings{Limits: policy.Limits{Silence: 250 * time.Millisecond}}})
				f := catalogued(t, name)
				f.Body = "id: %stream%_0\nretry: 600\ndata:\n\n"
				r.server.Script("pay", f)
				_, rec, err := r.call("pay", time.Minute)
				want, more, resumed := f.Expected(&so), gets(so), resumed
				if string(rec.Outcome) != want.Outcome || string(rec.Delivery) != want.Delivery || rec.PostCount != 1 || r.server.Effects("pay") != 1 {
					t.Errorf("err %v, record %+v", err, rec)
				}
				if so.Version != middlewaretest.Version20251125 {
					resumed = 0
				}
				if rec.SSE == nil || rec.SSE.Resumed != resumed {
					t.Errorf("stream %+v", rec.SSE)
				}
				if n := r.server.Counts().Gets; n != 2*more {
					t.Errorf("%d GETs, want %d", n, 2*more)
				}
				r.stillServes(f)
			})
		})
	}
}

// TestStreamDeviations: what a stream may not hold is noted; the first response stands.
func TestStreamDeviations(t *testing.T) {
	after := middlewaretest.Stream("data-after", "data: %response%\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n", middlewaretest.EndComplete)
	for name, c := range map[string]struct {
		fault     middlewaretest.Fault
		deviation observe.Deviation
		only2026  bool
	}{
		"second response": {catalogued(t, "sse-second-response"), observe.DeviationSecondResponse, false},
		"data after":      {after, observe.DeviationDataAfterResponse, false},
		"request":         {catalogued(t, "sse-server-request"), observe.DeviationServerRequest, true},
		"none":            {catalogued(t, "sse-plain"), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, so middlewaretest.Options) {
				r := newRig(t, so, never)
				r.server.Script("pay", c.fault)
				_, rec, err := r.call("pay", time.Minute)
				var want []observe.Deviation
				if c.deviation != "" && (!c.only2026 || so.Version == middlewaretest.Version20260728) {
					want = []observe.Deviation{c.deviation}
				}
				if err != nil || rec.Outcome != observe.ToolSuccess || !slices.Equal(rec.Deviations, want) || r.server.Effects("pay") != 1 {
					t.Errorf("err %v, deviations %v, record %+v", err, rec.Deviations, rec)
				}
				r.stillServes(middlewaretest.Fault{})
			})
		})
	}
}

// TestStrictRefusesServerRequests: under strict reading a request on a 2026-07-28
// stream ends the call.
func TestStrictRefusesServerRequests(t *testing.T) {
	r := newRig(t, middlewaretest.Options{}, never, policy.Rule{Settings: policy.Settings{Strict: new(true)}})
	r.server.Script("pay", catalogued(t, "sse-server-request"))
	if _, rec, _ := r.call("pay", time.Minute); rec.Outcome != observe.InvalidEnvelope || !slices.Contains(rec.Deviations, observe.DeviationServerRequest) {
		t.Errorf("record %+v", rec)
	}
}

// TestGzip: an answer is read as net/http decodes it, and one that it cannot decode to
// its end is named.
func TestGzip(t *testing.T) {
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		for _, stream := range []bool{false, true} {
			for name, outcome := range map[string]observe.Outcome{
				"gzip-correct": observe.ToolSuccess, "gzip-truncated": observe.StreamIncomplete, "gzip-not-gzip": observe.StreamIncomplete,
			} {
				r := newRig(t, so, never)
				f := catalogued(t, name)
				if stream {
					if name == "gzip-truncated" {
						outcome = observe.ToolSuccess // what was cut comes after the event
					}
					f = f.AsEvent()
					f.Header = http.Header{"Content-Type": {sse}, "Content-Encoding": {"gzip"}}
				}
				r.server.Script("pay", f)
				_, rec, err := r.call("pay", time.Minute)
				if rec.Outcome != outcome || r.server.Posts("pay") != 1 || r.server.Effects("pay") != 1 {
					t.Errorf("%s, stream %t: err %v, record %+v", name, stream, err, rec)
				}
				const named = "the compressed body was cut short or is not what it says"
				if outcome != observe.ToolSuccess && failure(t, err).Reason != named {
					t.Errorf("%s, stream %t: %v", name, stream, err)
				}
				r.stillServes(f)
			}
		}
	})
}

// TestRedirects: a call never changes its method, and goes on only within its origin,
// as one attempt with one key.
func TestRedirects(t *testing.T) {
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		for _, status := range []int{301, 302, 303, 307, 308} {
			for _, elsewhere := range []bool{false, true} {
				r := newRig(t, so, never)
				before := r.server.Counts().Gets
				f := middlewaretest.Redirect(status, elsewhere)
				r.server.Script("pay", f)
				_, rec, err := r.call("pay", time.Minute)
				followed := status > 303 && !elsewhere
				posts, effects, outcome := 1, 0, observe.Redirected
				if followed {
					posts, effects, outcome = 2, 1, observe.ToolSuccess
				}
				if rec.Outcome != outcome || len(rec.Attempts) != 1 || rec.PostCount != posts ||
					r.server.Posts("pay") != posts || r.server.Effects("pay") != effects || r.server.Counts().Gets > max(before, gets(so)) {
					t.Errorf("%s: %d POSTs, %d effects, err %v, record %+v", f.Name, r.server.Posts("pay"), r.server.Effects("pay"), err, rec)
				}
				if len(r.server.EffectsByKey("pay")) != effects || r.keysOf("pay") != 1 {
					t.Errorf("%s: %d keys", f.Name, r.keysOf("pay"))
				}
				if want := origin(r, elsewhere); !followed && failure(t, err).Location != want {
					t.Errorf("%s: to %q, want %q", f.Name, failure(t, err).Location, want)
				}
				r.stillServes(f)
			}
		}
	})
}

func origin(r *rig, elsewhere bool) string {
	host := "127.0.0.1"
	if elsewhere {
		host = "localhost"
	}
	var port int
	_, _ = fmt.Sscanf(r.server.URL(), "http://127.0.0.1:%d/mcp", &port)
	return fmt.Sprintf("http://%s:%d", host, port)
}

// keysOf is the number of different keys that the POSTs of a tool carried.
func (r *rig) keysOf(tool string) int {
	keys := map[string]bool{}
	for _, e := range r.server.Entries() {
		if e.Tool == tool {
			keys[e.Key] = true
		}
	}
	return len(keys)
}

// TestReplays: a server that sends what came before again and again does not go on with the
// stream; and an id that no header can carry is none (before 2026-07-28).
func TestReplays(t *testing.T) {
	so := middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true}
	for name, c := range map[string]struct {
		body, resumes string
		ids           []string
	}{
		"one":      {"id: a\nretry: 100\ndata:\n\n", "", []string{"a"}},
		"several":  {"retry: 100\nid: a\ndata:\n\nid: b\ndata:\n\n", "", []string{"b"}},
		"then new": {"id: a\nretry: 100\ndata:\n\n", "id: a\ndata:\n\nid: b\ndata:\n\n", []string{"a", "b"}},
		"control":  {"id: a\nretry: 100\ndata:\n\nid: b\x01\ndata:\n\nid: \x7f\ndata:\n\n", "", []string{"a"}},
		"no other": {"id: b\x01\ndata:\n\n", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, so, never)
			before := r.server.Counts().Gets
			r.server.Script("pay", middlewaretest.Stream("cut", c.body, middlewaretest.EndClose))
			resumes := c.resumes
			if resumes == "" {
				resumes = c.body
			}
			r.server.AlwaysMethod("GET", middlewaretest.Stream("replay", resumes, middlewaretest.EndClose))
			_, rec, err := r.call("pay", time.Minute)
			if err == nil || rec.Outcome != observe.StreamIncomplete || rec.Delivery != observe.Unknown {
				t.Errorf("err %v, record %+v", err, rec)
			}
			var ids []string
			for _, e := range r.server.Entries() {
				if e.HTTPMethod == "GET" && e.Header.Get("Last-Event-Id") != "" {
					ids = append(ids, e.Header.Get("Last-Event-Id"))
				}
			}
			if n := r.server.Counts().Gets - before; !slices.Equal(ids, c.ids) || n != len(c.ids) {
				t.Errorf("resumed at %q, %d GETs", ids, n)
			}
		})
	}
}
