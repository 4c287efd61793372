package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// tape keeps what a client's requests carry on the wire, below everything of ours.
type tape struct {
	http.RoundTripper
	mu       sync.Mutex
	requests []string
}

func (w *tape) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	var header bytes.Buffer
	_ = req.Header.Write(&header)
	w.mu.Lock()
	w.requests = append(w.requests, fmt.Sprintf("%s %s\n%s\n%s getbody=%t", req.Method, req.URL.Path, header.String(), body, req.GetBody != nil))
	w.mu.Unlock()
	return w.RoundTripper.RoundTrip(req)
}

// asSeen is all that a caller and a server can see of a client.
type asSeen struct {
	outcome  string // of the faulty call
	after    string // of a good call on the same session
	effects  int
	posts    int
	requests string // on the wire, in any order: a notification races with the rest
	record   *observe.Record
	observed int // attempts of which an observer was told
}

// changing are the parts of a text that differ from one run to the next.
var changing = []*regexp.Regexp{
	regexp.MustCompile(`127\.0\.0\.1:\d+`), regexp.MustCompile(`(?m)"id":"?[\w-]+"?|"requestId":"?[\w-]+"?|"progressToken":[^,}]+|"requestState":"[^"]*"`),
	regexp.MustCompile(`(?i)(?:session|last-event)[-_ ]?id"?: *\S+`), regexp.MustCompile(`stream ID \d+`),
	regexp.MustCompile(`[A-Z2-7]{26}`),              // a session's id
	regexp.MustCompile(`(?s)client is closing: .*`), // with EOF after a moment
}

func settled(text string) string {
	for _, re := range changing {
		text = re.ReplaceAllString(text, "*")
	}
	return text
}

func look(t *testing.T, so middlewaretest.Options, f middlewaretest.Fault, limit time.Duration, shadowed bool) asSeen {
	server := middlewaretest.NewServer(&so)
	defer server.Close()
	var s asSeen
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
		},
	})
	base := &http.Transport{TLSClientConfig: server.TLS(), ForceAttemptHTTP2: so.HTTP2}
	defer base.CloseIdleConnections()
	w := &tape{RoundTripper: base}
	hc := &http.Client{Transport: w}
	if shadowed {
		stack := middleware.New(&middleware.Options{
			Shadow: true,
			Policy: &policy.Policy{Rules: append([]policy.Rule{{Settings: policy.Settings{
				Surface: policy.SurfaceModel, MaxResult: middlewaretest.CatalogueResultLimit,
				Limits: policy.Limits{Attempt: time.Millisecond, Silence: time.Millisecond},
			}}}, classes()...)},
			Observer: &observe.Observer{AttemptStarted: func(ctx context.Context, _ observe.AttemptStart) (context.Context, map[string]string, func(*observe.AttemptEnd)) {
				return ctx, map[string]string{"traceparent": "00-1-2-01"}, func(*observe.AttemptEnd) { s.observed++ }
			}},
			OnRecord: checked(t, func(_ context.Context, r *observe.Record) {
				if r.Tool == "pay" {
					s.record = r
				}
			}),
		})
		client.AddSendingMiddleware(stack.Middleware()...)
		hc = stack.HTTPClient(hc)
	}
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL(), HTTPClient: hc}, nil)
	if err != nil {
		t.Error(err)
		return s
	}
	server.Script("pay", f)
	if f.Resume != 0 || strings.Contains(f.Name, "resume") {
		limit = max(limit, 4*time.Second) // the SDK resumes after one or two
	}
	s.outcome = told(cs, "pay", limit)
	s.posts, s.effects = server.Posts("pay"), server.Effects("pay")
	s.after = told(cs, "read_weather", 5*limit)
	_ = cs.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.requests {
		w.requests[i] = settled(w.requests[i])
	}
	slices.Sort(w.requests)
	s.requests = strings.Join(w.requests, "\n\n")
	return s
}

func told(cs *mcp.ClientSession, tool string, limit time.Duration) string {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	res, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"size": 10, "html": "<&>"}})
	raw, _ := json.Marshal(res)
	return settled(fmt.Sprintf("%s %v", raw, err))
}

// TestShadowChangesNothing: with every fault the caller gets what the SDK alone gives
// it, the session meets the same fate, and the wire carries the same bytes; the record
// tells what the fault was, and what would have been decided.
func TestShadowChangesNothing(t *testing.T) {
	slots := make(chan struct{}, 24) // they mostly wait: the SDK alone hangs on many faults
	for _, so := range servers() {
		t.Run(describe(so), func(t *testing.T) {
			t.Parallel()
			var running sync.WaitGroup
			for _, f := range middlewaretest.Faults() {
				// Whether a deadline within a body ends the session is a race in the SDK.
				if f.Applies(&so) && f.Name != "too-large-endless" && f.Name != "silent-in-body" {
					slots <- struct{}{}
					running.Go(func() { compareShadow(t, so, f); <-slots })
				}
			}
			running.Wait()
		})
	}
}

func compareShadow(t *testing.T, so middlewaretest.Options, f middlewaretest.Fault) {
	var bare, ours asSeen
	for try := range 5 { // how a cut connection reads is a race of the kernel's, and the machine may be busy
		limit := 400 * time.Millisecond << try
		bare, ours = look(t, so, f, limit, false), look(t, so, f, limit, true)
		if bare.same(&ours) && ours.record != nil && string(ours.record.Outcome) == shadowExpectation(so, f, ours.record).Outcome {
			break
		}
	}
	if !bare.same(&ours) {
		t.Errorf("%s:\nbare\n%+v\nshadow\n%+v", f.Name, bare, ours)
	}
	if ours.observed != 2 {
		t.Errorf("%s: %d attempts observed", f.Name, ours.observed)
	}
	checkShadowRecord(t, so, f, ours.record)
}

func (a *asSeen) same(b *asSeen) bool {
	return a.outcome == b.outcome && a.after == b.after && a.effects == b.effects && a.posts == b.posts && a.requests == b.requests
}

func checkShadowRecord(t *testing.T, so middlewaretest.Options, f middlewaretest.Fault, r *observe.Record) {
	t.Helper()
	if r == nil {
		t.Errorf("%s: no record", f.Name)
		return
	}
	if len(r.Attempts) != 1 || len(r.Would) == 0 || r.Decision.Action != "stop" || r.Ledger != nil || r.ModelText != "" {
		t.Errorf("%s: record %+v", f.Name, r)
	}
	want := shadowExpectation(so, f, r)
	if string(r.Outcome) != want.Outcome || string(r.Delivery) != want.Delivery {
		t.Errorf("%s: %s, %s; want %s, %s", f.Name, r.Outcome, r.Delivery, want.Outcome, want.Delivery)
	}
}

// shadowExpectation is what a fault comes to where nothing is done about it.
func shadowExpectation(so middlewaretest.Options, f middlewaretest.Fault, r *observe.Record) middlewaretest.Expectation {
	want := f.Expected(&so)
	switch {
	case r.Outcome == observe.SessionLost && strings.Contains(f.Name, "-404"), strings.HasPrefix(f.Name, "session-forgotten"):
		// Nobody asks the server whether the session is lost.
		want = middlewaretest.Expectation{Outcome: string(observe.SessionLost), Delivery: string(observe.Unknown)}
	case f.Name == "session-changed":
		// The SDK reads no further than the header.
		want = middlewaretest.Expectation{Outcome: string(observe.StreamIncomplete), Delivery: string(observe.Unknown)}
	case r.Outcome == observe.UnexpectedContent && (f.Name == "body-empty-200" || strings.Contains(f.Name, "-after-headers")):
		// Nor does it read a body of no media type, so that nobody sees how it ends.
		want.Outcome = string(observe.UnexpectedContent)
	case r.RetryOrigin == observe.OriginNetHTTP && r.Outcome == observe.ToolSuccess, r.PostCount > 1 && !f.EveryRound && f.Round == 0 && strings.HasPrefix(f.Name, "rounds-"):
		// What our guard stops goes on here: net/http's own repeats, and questions.
		want = middlewaretest.Expectation{Outcome: string(observe.ToolSuccess), Delivery: string(observe.Answered)}
	}
	return want
}

// TestShadowTellsWhatItWouldDo: repeats, waits and refusals are noted and not done.
func TestShadowTellsWhatItWouldDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var status int
		w := newShadow(t, func(_ int, p posted) (*http.Response, error) {
			if status != 0 {
				return jsonAnswer(status, "", "Retry-After", "7"), nil
			}
			return p.answer()
		})
		expect := func(ctx context.Context, tool string, code int, want ...string) {
			t.Helper()
			status = code
			before, began := w.wire.count(), time.Now()
			_, _ = w.session.CallTool(ctx, &mcp.CallToolParams{Name: tool})
			if took := time.Since(began); took != 0 || w.wire.count() != before+1 {
				t.Errorf("%s: %d POSTs in %s", tool, w.wire.count()-before, took)
			}
			r := w.records[len(w.records)-1]
			var got []string
			for _, c := range r.Would {
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %v", c.Action, c.WaitMs/1000)))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: would %q, want %q (%+v)", tool, got, want, r.Would)
			}
		}
		ctx := t.Context()
		expect(ctx, "read_weather", 503, "repeat 7.1")
		expect(ctx, "pay", 503, "stop 0")
		expect(ctx, "pay", 503, "refuse 0", "stop 0") // an equal call in doubt
		expect(idempotency.WithIntent(ctx, "a"), "send_mail", 0, "stop 0")
		expect(idempotency.WithIntent(ctx, "a"), "send_mail", 0, "replay 0", "wait 1", "stop 0")
		expect(ctx, "read_other", 429, "repeat 7.1")
		expect(ctx, "read_other", 0, "wait 7", "stop 0") // the gate
		time.Sleep(time.Minute)
		for range 3 {
			expect(ctx, "read_breaks", 500, "repeat 7.1")
		}
		expect(ctx, "read_breaks", 0, "refuse 30", "stop 0")
	})
}

type shadowBench struct {
	*story
	wire *fakeWire
}

func newShadow(t *testing.T, call func(int, posted) (*http.Response, error)) *shadowBench {
	t.Helper()
	s := &shadowBench{story: &story{}}
	stack := middleware.New(&middleware.Options{
		Shadow: true,
		Policy: &policy.Policy{Rules: append([]policy.Rule{
			{Tool: "send_mail", Settings: policy.Settings{Limiter: policy.Limiter{Rate: 1, Burst: 1}}},
			{Settings: policy.Settings{Breaker: policy.Breaker{Failures: 3}}},
		}, classes()...)},
		OnRecord: checked(t, func(_ context.Context, r *observe.Record) { s.records = append(s.records, r) }),
		Rand:     func() float64 { return 0.5 },
	})
	if got := stack.String(); got != "Record -> Attempt -> SDK -> Transport" {
		t.Errorf("the stack is %s", got)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "fake", Version: "1"}, nil)
	sdk := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	s.wire = &fakeWire{sdk: sdk, call: call}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	client.AddSendingMiddleware(stack.Middleware()...)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: "http://fake.test/mcp", HTTPClient: stack.HTTPClient(&http.Client{Transport: s.wire})}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	s.session = cs
	return s
}

// TestShadowPartsAlone: each middleware used by itself changes nothing either.
func TestShadowPartsAlone(t *testing.T) {
	opts := &middleware.Options{Shadow: true, Policy: &policy.Policy{Rules: []policy.Rule{{Settings: policy.Settings{Surface: policy.SurfaceModel}}}}}
	r := newRig(t, middlewaretest.Options{})
	for i, part := range []mcp.Middleware{middleware.Surface(opts), middleware.Key(opts), middleware.Retry(opts), middleware.Admit(opts), middleware.Attempt(opts)} {
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		client.AddSendingMiddleware(part)
		cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: r.server.URL()}, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.server.Script("read_weather", middlewaretest.Status(503))
		before := r.server.Posts("read_weather")
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_weather"})
		_, ours := middleware.ErrorFrom(err)
		if err == nil || res != nil || ours || r.server.Posts("read_weather") != before+1 {
			t.Errorf("part %d: %v, %v, %d POSTs", i, res, err, r.server.Posts("read_weather")-before)
		}
		_ = cs.Close()
	}
}

// TestShadowOfALostSession: it is not renewed, nobody is asked, and the record tells
// what would have been done.
func TestShadowOfALostSession(t *testing.T) {
	r := &rig{t: t, server: middlewaretest.NewServer(&middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true})}
	t.Cleanup(r.server.Close)
	var records []*observe.Record
	stack := middleware.New(&middleware.Options{
		Shadow:      true,
		Policy:      &policy.Policy{Rules: classes()},
		OnRecord:    checked(t, func(_ context.Context, r *observe.Record) { records = append(records, r) }),
		SessionLost: func(*middleware.SessionAnswer) bool { t.Error("asked for a loss"); return true },
		OnHealed:    func(context.Context, middleware.Renewal) { t.Error("healed") },
	})
	for _, tool := range []string{"read_weather", "pay"} {
		cs := r.connect(t, stack)
		r.server.ForgetSessions()
		before := r.server.Counts()
		_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool})
		if !errors.Is(err, mcp.ErrSessionMissing) {
			t.Errorf("%s: %v is not what the SDK says", tool, err)
		}
		if c := r.server.Counts(); c.Initializes != before.Initializes || c.Pings != before.Pings || r.server.Posts(tool) != 1 {
			t.Errorf("%s: counts %+v, then %+v", tool, before, c)
		}
		rec := records[len(records)-1]
		want := map[string][]string{"read_weather": {"renew", "repeat"}, "pay": {"renew", "stop"}}[tool]
		var got []string
		for _, c := range rec.Would {
			got = append(got, c.Action)
		}
		if !slices.Equal(got, want) || rec.Healed || rec.Outcome != observe.SessionLost || rec.Delivery != observe.Unknown {
			t.Errorf("%s: would %q, want %q; record %+v", tool, got, want, rec)
		}
	}
}

// TestShadowOverStdio: the SDK's own transports carry the session, so that a stray line
// does what it does there.
func TestShadowOverStdio(t *testing.T) {
	call := func(transport func(*middleware.Stack, io.ReadCloser, io.WriteCloser) mcp.Transport) (string, *observe.Record) {
		serverIn, clientOut := io.Pipe()
		clientIn, serverOut := io.Pipe()
		s := newLineServer("2025-11-25", serverOut)
		go func() {
			s.serve(serverIn)
			serverOut.Close()
		}()
		var record *observe.Record
		stack := middleware.New(&middleware.Options{
			Shadow:   true,
			Policy:   &policy.Policy{Rules: classes()},
			OnRecord: checked(t, func(_ context.Context, r *observe.Record) { record = r }),
		})
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		client.AddSendingMiddleware(stack.Middleware()...)
		cs, err := client.Connect(t.Context(), transport(stack, clientIn, clientOut), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer cs.Close()
		first := told(cs, "read_weather", 10*time.Second)
		s.interfere("listening")
		second := told(cs, "read_weather", 10*time.Second)
		if token := s.metas[0]["progressToken"]; token != nil {
			t.Errorf("the call carries a token: %v", token)
		}
		return first + second, record
	}
	bare, _ := call(func(_ *middleware.Stack, r io.ReadCloser, w io.WriteCloser) mcp.Transport {
		return &mcp.IOTransport{Reader: r, Writer: w}
	})
	ours, rec := call(func(s *middleware.Stack, r io.ReadCloser, w io.WriteCloser) mcp.Transport { return s.IOTransport(r, w) })
	if bare != ours || !strings.Contains(bare, "done") || !strings.Contains(bare, "invalid character") {
		t.Errorf("bare\n%s\nshadow\n%s", bare, ours)
	}
	if rec == nil || rec.PostCount != 0 || len(rec.Would) != 1 {
		t.Errorf("record %+v", rec)
	}
}
