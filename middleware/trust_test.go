package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// TestRefusedStreamIsNotTakenOnWords: the error of a GOAWAY that our stream lies
// below quotes the peer's own code and words, which may look like proof.
func TestRefusedStreamIsNotTakenOnWords(t *testing.T) {
	const rewind = " after Request.Body was written; define Request.GetBody to avoid this error"
	for text, proof := range map[string]bool{
		"http2: Transport: cannot retry err [stream error: stream ID 7; REFUSED_STREAM; received from peer]" + rewind:                                                  true,
		"http2: Transport: cannot retry err [http2: Transport received Server's graceful shutdown GOAWAY]" + rewind:                                                    true,
		"stream error: stream ID 7; REFUSED_STREAM; received from peer":                                                                                                true,
		"stream error: stream ID 7; PROTOCOL_ERROR; received from peer":                                                                                                false,
		"stream error: stream ID 7; REFUSED_STREAM":                                                                                                                    false,
		`http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=REFUSED_STREAM, debug=""`:                                                        false,
		`http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=NO_ERROR, debug="stream error: stream ID 1; REFUSED_STREAM; received from peer"`: false,
		`http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=NO_ERROR, debug="http2: Transport received Server's graceful shutdown GOAWAY"`:   false,
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(_ int, p posted) (*http.Response, error) {
				p.connect(true)
				return nil, errors.New(text)
			}, never)
			defer b.session.Close()
			if _, rec, _ := b.call("pay", 0); (rec.Delivery == observe.NotSent) != proof {
				t.Errorf("%s: %s", text, rec.Delivery)
			}
		})
	}
}

// TestNestedCallIsAnothers: an input handler gets the call's context and may call a
// tool with a client that has only our transport; its answer is not the call's.
func TestNestedCallIsAnothers(t *testing.T) {
	server := middlewaretest.NewServer(nil)
	defer server.Close()
	var rec *observe.Record
	stack := middleware.New(&middleware.Options{OnRecord: checked(t, func(_ context.Context, r *observe.Record) { rec = r })})
	hc := stack.HTTPClient(nil)
	defer hc.CloseIdleConnections()
	connect := func(client *mcp.Client) *mcp.ClientSession {
		cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL(), HTTPClient: hc}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return cs
	}
	bare := connect(mcp.NewClient(&mcp.Implementation{Name: "bare", Version: "1"}, nil))
	defer bare.Close()
	for _, nested := range []string{"send_mail", "ask"} {
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
			ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				_, _ = bare.CallTool(ctx, &mcp.CallToolParams{Name: nested})
				return nil, errors.New("no answer")
			},
		})
		client.AddSendingMiddleware(stack.Middleware()...)
		cs := connect(client)
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask", Arguments: map[string]any{"n": nested}})
		if err == nil || rec.Outcome == observe.ToolSuccess || rec.PostCount != 1 {
			t.Errorf("nested %s: result %+v, record %+v", nested, res, rec)
		}
		_ = cs.Close()
	}
}

// hiding is a layer above our transport that makes large requests unreadable.
type hiding struct{ http.RoundTripper }

func (h hiding) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.ContentLength < 2000 {
		return h.RoundTripper.RoundTrip(req)
	}
	out := req.Clone(req.Context())
	out.GetBody = nil
	out.Header.Set("Content-Type", "application/octet-stream")
	return h.RoundTripper.RoundTrip(out)
}

// TestUnseenRequestProvesNothing: a POST that went by unread may have arrived.
func TestUnseenRequestProvesNothing(t *testing.T) {
	server := middlewaretest.NewServer(nil)
	defer server.Close()
	var rec *observe.Record
	stack := middleware.New(&middleware.Options{OnRecord: checked(t, func(_ context.Context, r *observe.Record) { rec = r })})
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	client.AddSendingMiddleware(stack.Middleware()...)
	hc := &http.Client{Transport: hiding{stack.Transport(nil)}}
	defer hc.CloseIdleConnections()
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL(), HTTPClient: hc}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	server.Always("pay", middlewaretest.Reset().Executed())
	_, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"note": strings.Repeat("x", 4000)}})
	if rec.Delivery == observe.NotSent || len(rec.Attempts) != 1 {
		t.Errorf("err %v, record %+v", err, rec)
	}
}

// TestContentTypesOfAllForms: what we read as JSON or SSE, the SDK has to.
func TestContentTypesOfAllForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var media, format string
		b := newBench(t, func(_ int, p posted) (*http.Response, error) {
			return jsonAnswer(200, fmt.Sprintf(format, p.id), "Content-Type", media), nil
		})
		defer b.session.Close()
		const good = `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`
		for _, suffix := range []string{"", "; charset", ";charset=", ";;", "; =x", `; charset="utf-8`, "; charset=utf-8"} {
			for base, body := range map[string]string{"application/json": good, "text/event-stream": "data: " + good + "\n\n"} {
				media, format = base+suffix, body
				if _, rec, err := b.call("read_weather", 0); err != nil {
					t.Errorf("%s: %v (%s)", media, err, rec.Outcome)
				}
			}
		}
	})
}

// TestSessionIDsAreCorrected: ids that the SDK would end the session on, wherever
// they come.
func TestSessionIDsAreCorrected(t *testing.T) {
	for _, sessions := range []bool{true, false} {
		server := middlewaretest.NewServer(&middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: sessions})
		defer server.Close()
		var n atomic.Int64
		hc := middleware.New(nil).HTTPClient(&http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err == nil && (req.Header.Get("Mcp-Session-Id") != "" || n.Add(1) > 2) {
				resp.Header.Set("Mcp-Session-Id", fmt.Sprint("other-", n.Add(1)))
			}
			return resp, err
		})})
		defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL(), HTTPClient: hc, DisableStandaloneSSE: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer cs.Close()
		server.Script("slow", middlewaretest.Hang())
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, _ = cs.CallTool(ctx, &mcp.CallToolParams{Name: "slow"}) // a notifications/cancelled follows
		cancel()
		for range 3 {
			if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"}); err != nil {
				t.Errorf("sessions %t: %v", sessions, err)
			}
		}
	}
}

// TestBaseWithoutTrace: a base transport that fires no trace events has no
// connecting to be bounded.
func TestBaseWithoutTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(_ int, p posted) (*http.Response, error) {
			time.Sleep(time.Minute)
			return p.answer()
		})
		defer b.session.Close()
		if _, rec, err := b.call("pay", 0); err != nil {
			t.Errorf("%v %+v", err, rec)
		}
	})
}

// TestHostsPanic: a panic inside comes out on the caller's goroutine, and does not
// hold the slot of a half-open breaker.
func TestHostsPanic(t *testing.T) {
	mode := "down"
	opts := &middleware.Options{Policy: &policy.Policy{Rules: []policy.Rule{{Settings: policy.Settings{
		Breaker: policy.Breaker{Failures: 1, Open: time.Millisecond}, Key: policy.Key{Guard: -1}}}}}}
	stack := middleware.New(opts)
	var h mcp.MethodHandler = func(context.Context, string, mcp.Request) (mcp.Result, error) {
		switch mode {
		case "down":
			return nil, errors.New("EOF")
		case "panic":
			panic("host bug")
		}
		return &mcp.CallToolResult{}, nil
	}
	layers := stack.Middleware()
	for i := len(layers) - 1; i >= 0; i-- {
		h = layers[i](h)
	}
	call := func() (panicked any, err error) {
		defer func() { panicked = recover() }()
		_, err = h(t.Context(), "tools/call", &mcp.ClientRequest[mcp.Params]{Params: &mcp.CallToolParams{Name: "pay"}})
		return nil, err
	}
	_, _ = call()
	mode = "panic"
	for {
		// The breaker opens for a millisecond; the probe after it panics.
		panicked, err := call()
		if panicked == "host bug" {
			break
		}
		var e *observe.Error
		if panicked != nil || !errors.As(err, &e) || e.Outcome != observe.BreakerOpen {
			t.Fatalf("err %v, panic %v", err, panicked)
		}
	}
	mode = "up"
	if _, err := call(); err != nil {
		t.Errorf("after the panic: %v", err)
	}
}

// TestGatewayTextIsNoCode: what only looks like a JSON-RPC error is a gateway's text.
func TestGatewayTextIsNoCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(int, posted) (*http.Response, error) {
			return jsonAnswer(502, `{"error":{"code":1000,"message":"db-7.internal said: user bob"}}`), nil
		}, policy.Rule{Settings: policy.Settings{Surface: policy.SurfaceModel, Retry: policy.Retry{RefusedCodes: []int64{1000}}}})
		defer b.session.Close()
		res, rec, _ := b.call("pay", 0)
		if b.wire.count() != 1 || rec.Delivery != observe.Unknown || strings.Contains(rec.ModelText, "bob") || strings.Contains(fmt.Sprint(res.GetError()), "bob") {
			t.Errorf("%d POSTs, record %+v", b.wire.count(), rec)
		}
	})
}

// TestLaterRoundNotSent: the server has had the first round, so the call is not
// "not sent", though the repeat that goes on with the second round is safe.
func TestLaterRoundNotSent(t *testing.T) {
	r := newRig(t, middlewaretest.Options{}, policy.Rule{Tool: "ask", Settings: policy.Settings{Retry: policy.Retry{Repeats: -1}}})
	inner := r.stack
	refuse := roundTrip(func(req *http.Request) (*http.Response, error) {
		if body, _ := req.GetBody(); body != nil {
			if raw, _ := io.ReadAll(body); bytes.Contains(raw, []byte("inputResponses")) {
				req = req.Clone(req.Context())
				req.URL.Host = "127.0.0.1:1"
			}
		}
		return http.DefaultTransport.RoundTrip(req)
	})
	_ = inner
	var rec *observe.Record
	stack := middleware.New(&middleware.Options{OnRecord: checked(t, func(_ context.Context, x *observe.Record) { rec = x }),
		Policy: &policy.Policy{Rules: []policy.Rule{{Settings: policy.Settings{Retry: policy.Retry{Repeats: -1}}}}}})
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
		},
	})
	client.AddSendingMiddleware(stack.Middleware()...)
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: r.server.URL(), HTTPClient: stack.HTTPClient(&http.Client{Transport: rewound(refuse)})}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	_, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"})
	var e *observe.Error
	if !errors.As(err, &e) || e.Delivery != observe.Answered || e.RepeatSafe || rec.Delivery != observe.Answered {
		t.Errorf("error %+v, record %+v", e, rec)
	}
}

// rewound gives the next layer requests whose body it can look at.
func rewound(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		if req.Body == nil || req.Method != http.MethodPost {
			return http.DefaultTransport.RoundTrip(req)
		}
		raw, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req = req.Clone(req.Context())
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
		req.Body, _ = req.GetBody()
		return next.RoundTrip(req)
	})
}

// TestAnnouncedLengths: a length is not believed before bytes have come, and no limit
// is no overflow.
func TestAnnouncedLengths(t *testing.T) {
	for _, limit := range []int64{-1, math.MaxInt64, 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			huge := true
			b := newBench(t, func(_ int, p posted) (*http.Response, error) {
				resp, err := p.answer()
				if resp.ContentLength = -1; huge {
					resp.ContentLength = math.MaxInt64
					resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(make([]byte, 1<<20+100)), errReader{}))
				}
				return resp, err
			}, never, policy.Rule{Settings: policy.Settings{MaxResult: limit}})
			defer b.session.Close()
			if _, rec, _ := b.call("pay", 0); rec.Outcome != observe.StreamIncomplete && rec.Outcome != observe.ResultTooLarge {
				t.Errorf("limit %d: %s", limit, rec.Outcome)
			}
			huge = false
			if _, rec, err := b.call("send_mail", 0); err != nil {
				t.Errorf("limit %d: %v %s", limit, err, rec.Outcome)
			}
		})
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestResumptionIsBounded: a server's reconnection time neither hangs a call nor makes
// it ask without pause.
func TestResumptionIsBounded(t *testing.T) {
	for retry, most := range map[string]time.Duration{"1": 30 * time.Second, "999999999": 2 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			gets := 0
			base := roundTrip(func(req *http.Request) (*http.Response, error) {
				h := http.Header{"Content-Type": {"text/event-stream"}}
				body := fmt.Sprintf("retry: %s\nid: %d\ndata:\n\n", retry, gets)
				if req.Method == http.MethodGet {
					gets++
				} else if raw, _ := io.ReadAll(req.Body); !bytes.Contains(raw, []byte("tools/call")) {
					body = `{"jsonrpc":"2.0","id":` + idOf(raw) + `,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`
					h.Set("Content-Type", "application/json")
					if bytes.Contains(raw, []byte("server/discover")) {
						return jsonAnswer(404, ""), nil
					}
				}
				return &http.Response{StatusCode: 200, Header: h, ContentLength: -1, Body: io.NopCloser(strings.NewReader(body))}, nil
			})
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			hc := &http.Client{Transport: middleware.NewTransport(base, nil)}
			cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: "http://fake.test/mcp", HTTPClient: hc, DisableStandaloneSSE: true}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer cs.Close()
			start := time.Now()
			_, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"})
			if e, ok := middleware.ErrorFrom(err); !ok || e.Outcome != observe.StreamIncomplete || time.Since(start) > most || gets > 100 {
				t.Errorf("retry %s: %d GETs in %v: %v", retry, gets, time.Since(start), err)
			}
		})
	}
}

func idOf(raw []byte) string {
	var msg struct{ ID json.RawMessage }
	if json.Unmarshal(raw, &msg) != nil || msg.ID == nil {
		return "0"
	}
	return string(msg.ID)
}
