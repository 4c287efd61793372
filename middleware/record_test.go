package middleware_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// secretKey begins the idempotency keys of the recorded calls.
const secretKey = "host-key-"

// TestRecordJSON compares whole records, byte for byte, with testdata/records: what
// "doctor -json" prints is an interface. The clock is that of synctest, which begins
// in 2000 and moves only by waits, so that times and durations are exact.
func TestRecordJSON(t *testing.T) {
	for _, c := range []struct {
		name   string
		tool   string
		rules  []policy.Rule
		wire   func(n int, p posted) (*http.Response, error)
		before string // the intent of a call that was made before
	}{
		{name: "sse-success", tool: "pay", wire: func(_ int, p posted) (*http.Response, error) {
			time.Sleep(1500 * time.Microsecond)
			return answering(200, events(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}`,
				`{"jsonrpc":"2.0","id":%id%,"result":{"resultType":"complete","content":[],"isError":false}}`), "Content-Type", "text/event-stream")(0, p)
		}},
		{name: "jsonrpc-error", tool: "pay", wire: answering(200,
			`{"jsonrpc":"2.0","id":%id%,"error":{"code":-32000,"message":"denied for token=abcdef123456","data":{"password":"hunter2hunter2","at":7}}}`)},
		{name: "foreign-id", tool: "pay", wire: answering(200, `{"jsonrpc":"2.0","id":"of another","result":{"content":[{"type":"text","text":"private"}]}}`)},
		{name: "read-repeated", tool: "read_weather", wire: func(n int, p posted) (*http.Response, error) {
			if n == 1 {
				return jsonAnswer(503, "come back; password=hunter2hunter2", "Retry-After", "2", "Content-Type", "text/plain"), nil
			}
			return answering(200, `{"jsonrpc":"2.0","id":%id%,"error":null,"result":{"content":[],"isError":true},"extra":1}`)(n, p)
		}},
		{name: "login-page", tool: "pay", rules: []policy.Rule{toModel}, wire: func(int, posted) (*http.Response, error) {
			return jsonAnswer(200, `<title>Sign in</title><meta name="result" content="0; url=https://u:p@sso.test/?t=1">`, "Content-Type", "text/html; charset=utf-8"), nil
		}},
		{name: "breaker-open", tool: "pay", before: "another", wire: answering(500, ""),
			rules: []policy.Rule{{Settings: policy.Settings{Breaker: policy.Breaker{Failures: 1}}}}},
		{name: "gate-wait", tool: "pay", before: "another", rules: []policy.Rule{never}, wire: func(n int, p posted) (*http.Response, error) {
			if n == 1 {
				return jsonAnswer(429, "", "Retry-After", "5"), nil
			}
			return p.answer()
		}},
		{name: "limiter-wait", tool: "pay", before: "another", rules: []policy.Rule{limited(false)}, wire: answering(200, doneBody)},
		{name: "limiter-refused", tool: "pay", before: "another", rules: []policy.Rule{limited(true)}, wire: answering(200, doneBody)},
		{name: "backoff", tool: "read_weather", wire: func(n int, p posted) (*http.Response, error) {
			if n < 3 {
				return jsonAnswer(503, "", "Content-Type", "text/plain"), nil
			}
			return p.answer()
		}},
		{name: "blocked", tool: "pay", before: "this", wire: answering(500, "")},
		{name: "throttled", tool: "pay", rules: []policy.Rule{never}, wire: answering(429, "", "Retry-After", "5")},
		{name: "replayed-below", tool: "set_label", wire: func(_ int, p posted) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(p.req.Context())
			trace.WroteHeaders()
			trace.WroteHeaders()
			return p.answer()
		}},
		{name: "stream-cut", tool: "pay", wire: cutShort(answering(200,
			events(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`), "Content-Type", "text/event-stream"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStory(t, c.rules, c.wire)
				if c.before != "" {
					s.call(t, c.tool, c.before)
				}
				s.call(t, c.tool, "this")
				checkRecord(t, c.name, s.records[len(s.records)-1])
			})
		})
	}
}

const doneBody = `{"jsonrpc":"2.0","id":%id%,"result":{"content":[]}}`

// limited lets one call pass in two seconds.
func limited(noWait bool) policy.Rule {
	return policy.Rule{Settings: policy.Settings{Limiter: policy.Limiter{Rate: 0.5, Burst: 1, NoWait: &noWait}}}
}

// TestExcerpt: a record keeps the beginning of a body that is no answer, but never a
// part of a result, which is what a tool said.
func TestExcerpt(t *testing.T) {
	const (
		asJSON, asEvents = "application/json", "text/event-stream"
		private          = `"result":{"content":[{"type":"text","text":"private"}]}}`
		page             = `<meta name="content" content="a"><script>{"result":"\u0061","content":1,"structuredContent":2}</script>`
	)
	for _, c := range []struct {
		name   string
		status int
		media  string
		body   string
		cut    bool
		want   string
	}{
		{name: "answer cut in its result", media: asJSON, body: `{"jsonrpc":"2.0","id":%id%,"result":{"content":[{"type":"text","text":"priv`, cut: true, want: `{"jsonrpc":"2.0","id":%id%,`},
		{name: "answer cut before it", media: asJSON, body: `{"jsonrpc":"2.0","id"`, cut: true, want: `{"jsonrpc":"2.0","id"`},
		{name: "a bare result, cut", media: asJSON, body: private[:40], cut: true},
		{name: "answer of another type", media: "text/json", body: `{"jsonrpc":"2.0","id":%id%,` + private, want: `{"jsonrpc":"2.0","id":%id%,`},
		{name: "answer in another case", media: asJSON, body: `{"jsonrpc":"2.0","id":%id%,"Result":{"Content":["private"]}}`, want: `{"jsonrpc":"2.0","id":%id%,`},
		{name: "answer to another", media: asJSON, body: `{"jsonrpc":"2.0","id":99,` + private, want: `{"jsonrpc":"2.0","id":99,`},
		{name: "content without result", media: asJSON, body: `{"id":1,"content":["private"]}`, want: `{"id":1,`},
		{name: "structured content without result", media: asJSON, body: `{"structuredContent":"private"}`, want: `{`},
		{name: "name hidden by an escape", media: asJSON, body: `{"id":1,"res\u0075lt":"private"}`, want: `{"id":1,"res`},
		{name: "result in an error status", status: 500, media: asJSON, body: `{"jsonrpc":"2.0","id":%id%,` + private, want: `{"jsonrpc":"2.0","id":%id%,`},
		{name: "event for another", media: asEvents, body: events(`{"jsonrpc":"2.0","id":99,` + private), want: `{"jsonrpc":"2.0","id":99,`},
		{name: "broken event", media: asEvents, body: events(`{"result":"private"`), want: `{`},
		{name: "error without a result", media: asJSON, body: `{"error":{"code":1,"message":"no result"}}`, want: `{"error":{"code":1,"message":"no result"}}`},
		{name: "error status without a result", status: 500, media: asJSON, body: `{"message":"no result, no content"}`, want: `{"message":"no result, no content"}`},
		{name: "page", media: "text/html", body: page, want: page},
		{name: "page in an error status", status: 502, media: "text/html; charset=utf-8", body: page, want: page},
		{name: "text", media: "text/plain", body: "no result", want: "no result"},
		{name: "secret", media: "text/plain", body: "password=hunter2hunter2\r\nbye", want: "password=[redacted]  bye"},
		{name: "long", media: "text/plain", body: strings.Repeat("x", 100_000), want: strings.Repeat("x", 512)},
		{name: "a secret at the border", media: "text/plain", body: strings.Repeat("x", 500) + " token=abcdefghijklmnop", want: strings.Repeat("x", 500) + " token=[reda"},
		{name: "usable answer", media: asJSON, body: `{"jsonrpc":"2.0","id":%id%,` + private},
		{name: "usable event", media: asEvents, body: events(`{"jsonrpc":"2.0","id":%id%,` + private)},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wire := answering(cmp.Or(c.status, 200), c.body, "Content-Type", c.media)
				if c.cut {
					wire = cutShort(wire)
				}
				s := newStory(t, []policy.Rule{never}, wire)
				s.call(t, "pay", "this")
				r := s.records[0]
				if want := strings.ReplaceAll(c.want, "%id%", string(r.JSONRPC.ID)); r.Excerpt != want {
					t.Errorf("excerpt %q, want %q (record %+v)", r.Excerpt, want, r)
				}
			})
		})
	}
}

// TestRecordBoundsTheServersWords: a server cannot fill the host's logs.
func TestRecordBoundsTheServersWords(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	synctest.Test(t, func(t *testing.T) {
		s := newStory(t, nil, answering(200, `{"jsonrpc":"2.0","id":%id%,"error":{"code":1,"message":"`+long+`","data":"`+long+`"}}`))
		s.call(t, "pay", "this")
		if r := s.records[0].JSONRPC; len(r.ErrorMessage) != 512 || len(r.ErrorData) != 512 {
			t.Errorf("%d bytes of message, %d of data", len(r.ErrorMessage), len(r.ErrorData))
		}
	})
}

// story is a wrapped client over a fake wire, whose records hold nothing random.
type story struct {
	session *mcp.ClientSession
	records []*observe.Record
}

func newStory(t *testing.T, rules []policy.Rule, wire func(int, posted) (*http.Response, error)) *story {
	t.Helper()
	s := &story{}
	stack := middleware.New(&middleware.Options{
		Policy:   &policy.Policy{Rules: append(rules, classes()...)},
		Client:   "host@1",
		OnRecord: checked(t, func(_ context.Context, r *observe.Record) { s.records = append(s.records, r) }),
		Rand:     func() float64 { return 0.5 },
	})
	server := mcp.NewServer(&mcp.Implementation{Name: "fake", Version: "1"}, nil)
	sdk := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	client.AddSendingMiddleware(stack.Middleware()...)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint:   "http://user:pa55word@fake.test/mcp?token=secret",
		HTTPClient: stack.HTTPClient(&http.Client{Transport: &fakeWire{sdk: sdk, call: wire}}),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	s.session = cs
	return s
}

// call calls a tool with a host's own key, which is that of the intent.
func (s *story) call(t *testing.T, tool, intent string) {
	ctx := observe.WithScenario(idempotency.WithKey(t.Context(), secretKey+intent), "golden")
	_, _ = s.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"for": intent}})
}

// answering answers every call alike; %id% stands for the call's id.
func answering(status int, body string, header ...string) func(int, posted) (*http.Response, error) {
	return func(_ int, p posted) (*http.Response, error) {
		return jsonAnswer(status, strings.ReplaceAll(body, "%id%", string(p.id)), header...), nil
	}
}

// events are messages as an event stream.
func events(messages ...string) string {
	return "data: " + strings.Join(messages, "\n\ndata: ") + "\n\n"
}

// cutShort breaks the connection after the body.
func cutShort(answer func(int, posted) (*http.Response, error)) func(int, posted) (*http.Response, error) {
	return func(n int, p posted) (*http.Response, error) {
		resp, err := answer(n, p)
		resp.ContentLength = -1
		resp.Body = io.NopCloser(io.MultiReader(resp.Body, iotest.ErrReader(io.ErrUnexpectedEOF)))
		return resp, err
	}
}

func checkRecord(t *testing.T, name string, r *observe.Record) {
	t.Helper()
	got, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, name+".json", string(got)+"\n")
	golden(t, name+".txt", r.Text())
}

var update = flag.Bool("update", false, "write testdata anew")

// golden compares a text with a file of testdata/records.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "records", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, want)
	}
}
