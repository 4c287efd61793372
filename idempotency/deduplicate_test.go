package idempotency_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
)

func TestDeduplicate(t *testing.T) {
	type step struct {
		tool string
		key  any
		args any
		want string
	}
	const (
		mismatch = `-32602 this idempotency key belongs to an earlier call of another tool or with other arguments {"idempotency":"mismatch"}`
		unknown  = `-32603 an earlier call with this idempotency key was interrupted: it may have taken effect, and is not executed again {"idempotency":"unknown"}`
		badKey   = `-32602 io.github.surecall/idempotency-key in _meta must be a string of 1 to 1024 bytes`
	)
	one := map[string]any{"n": 1}
	for _, tt := range []struct {
		name  string
		steps []step
		ran   int32
	}{
		{"once for each key", []step{
			{"order", "k", one, "order 1"}, {"order", "k", one, "replay: order 1"}, {"order", "k", one, "replay: order 1"}, {"order", "l", one, "order 2"},
		}, 2},
		{"without a key every time", []step{{"order", nil, one, "order 1"}, {"order", nil, one, "order 2"}}, 2},
		{"equal arguments, other spelling", []step{
			{"order", "k", json.RawMessage(`{"a":1,"b":2}`), "order 1"}, {"order", "k", json.RawMessage(`{"b":2.0,"a":1}`), "replay: order 1"},
		}, 1},
		{"no arguments", []step{{"order", "k", nil, "order 1"}, {"order", "k", map[string]any{}, "replay: order 1"}}, 1},
		{"tool errors", []step{{"fails", "k", one, "error: failure 1"}, {"fails", "k", one, "replay: error: failure 1"}}, 1},
		{"protocol errors", []step{{"refuses", "k", one, `-31001 refusal 1 {"a":1}`}, {"refuses", "k", one, `-31001 refusal 1 {"a":1}`}}, 1},
		{"other errors", []step{{"breaks", "k", one, "0 break 1"}, {"breaks", "k", one, "0 break 1"}}, 1},
		{"other arguments", []step{{"order", "k", one, "order 1"}, {"order", "k", map[string]any{"n": 2}, mismatch}, {"order", "k", one, "replay: order 1"}}, 1},
		{"another tool", []step{{"order", "k", one, "order 1"}, {"refund", "k", one, mismatch}}, 1},
		{"a tool that panics", []step{{"panics", "k", one, "0 panic 1"}, {"panics", "k", one, unknown}, {"order", "l", one, "order 2"}}, 2},
		{"keys that are none", []step{
			{"order", "", one, badKey}, {"order", 7, one, badKey}, {"order", strings.Repeat("k", 1025), one, badKey}, {"order", strings.Repeat("k", 1024), one, "order 1"},
		}, 1},
	} {
		for over, connection := range connections {
			t.Run(tt.name+" "+over, func(t *testing.T) {
				s := newShopServer(nil, nil)
				c := s.connect(t, connection, "ann")
				for i, step := range tt.steps {
					if got := c.call(t.Context(), step.tool, step.key, step.args); got != step.want {
						t.Errorf("call %d: %s\nwant %s", i+1, got, step.want)
					}
				}
				if got := s.ran.Load(); got != tt.ran {
					t.Errorf("ran %d times, want %d", got, tt.ran)
				}
			})
		}
	}
}

// A replayed result is the one that was sent, number for number.
func TestReplayIsExact(t *testing.T) {
	s := newShopServer(nil, nil)
	var sent []string
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			res, err := next(ctx, method, req)
			if result, ok := res.(*mcp.CallToolResult); ok {
				c := *result
				c.Meta = mcp.Meta{"run": c.Meta["run"]}
				b, err := json.Marshal(&c)
				if err != nil {
					t.Error(err)
				}
				sent = append(sent, string(b))
			}
			return res, err
		}
	})
	c := s.connect(t, inMemory, "")
	c.call(t.Context(), "order", "k", nil)
	c.call(t.Context(), "order", "k", nil)
	if len(sent) != 2 || sent[0] != sent[1] || !strings.Contains(sent[0], "9007199254740993") {
		t.Errorf("sent %q", sent)
	}
}

func TestDeduplicateByPrincipal(t *testing.T) {
	for over, connection := range connections {
		if over == "in memory" {
			continue // no tokens there
		}
		t.Run(over, func(t *testing.T) {
			s := newShopServer(nil, nil)
			ann, bob := s.connect(t, connection, "ann"), s.connect(t, connection, "bob")
			for _, step := range []struct {
				who  *shopper
				args any
				want string
			}{
				{ann, "a", "order 1"}, {bob, "b", "order 2"}, {ann, "a", "replay: order 1"}, {bob, "b", "replay: order 2"},
			} {
				if got := step.who.call(t.Context(), "order", "k", map[string]any{"of": step.args}); got != step.want {
					t.Errorf("got %s, want %s", got, step.want)
				}
			}
		})
	}
}

func TestDeduplicatePrincipalOption(t *testing.T) {
	s := newShopServer(nil, &idempotency.DeduplicateOptions{
		Principal: func(req *mcp.CallToolRequest) string { who, _ := req.Params.Meta["who"].(string); return who },
		MetaKey:   "idempotency-key",
	})
	c := s.connect(t, inMemory, "")
	for _, step := range []struct {
		meta mcp.Meta
		want string
	}{
		{mcp.Meta{"idempotency-key": "k", "who": "ann"}, "order 1"},
		{mcp.Meta{"idempotency-key": "k", "who": "bob"}, "order 2"},
		{mcp.Meta{"idempotency-key": "k", "who": "ann"}, "order 1"},
		{mcp.Meta{idempotency.MetaKey: "k", "who": "ann"}, "order 3"},
	} {
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "order", Meta: step.meta})
		if err != nil || res.Content[0].(*mcp.TextContent).Text != step.want {
			t.Errorf("%v: %+v, %v; want %s", step.meta, res, err, step.want)
		}
	}
	if name, ok := idempotency.Announced(c.InitializeResult().Capabilities); name != "idempotency-key" || !ok {
		t.Errorf("announced %q", name)
	}
}

// Calls with the key of one that runs wait for its answer.
func TestConcurrentDuplicatesWait(t *testing.T) {
	for over, connection := range connections {
		t.Run(over, func(t *testing.T) {
			s := newShopServer(nil, nil)
			c := s.connect(t, connection, "ann")
			answers := make(chan string, 5)
			for range cap(answers) {
				go func() { answers <- c.call(t.Context(), "held", "k", nil) }()
			}
			for s.ran.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			close(s.hold)
			got := map[string]int{}
			for range cap(answers) {
				got[<-answers]++
			}
			if got["held"] != 1 || got["replay: held"] != cap(answers)-1 || s.ran.Load() != 1 {
				t.Errorf("answers %v, ran %d times", got, s.ran.Load())
			}
		})
	}
}

// An answer that asks is not final. A client that gives every round the same key
// gets through, is asked once, and is answered from the store when it repeats.
func TestInputRequiredIsNotFinal(t *testing.T) {
	for over, connection := range connections {
		t.Run(over, func(t *testing.T) {
			s := newShopServer(nil, nil)
			c := s.connect(t, connection, "ann")
			for _, want := range []string{"order 1", "replay: order 1"} {
				if got := c.call(t.Context(), "asks", "k", nil); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
			if s.ran.Load() != 1 || c.asked.Load() != 1 {
				t.Errorf("ran %d times, asked %d times", s.ran.Load(), c.asked.Load())
			}
		})
	}
}

// What a cancelled execution did is unknown, unless it may go on.
func TestCanceledExecution(t *testing.T) {
	for _, tt := range []struct {
		name   string
		finish bool
		want   string
	}{
		{"stopped", false, `-32603 an earlier call with this idempotency key was interrupted: it may have taken effect, and is not executed again {"idempotency":"unknown"}`},
		{"goes on", true, "replay: held"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShopServer(nil, &idempotency.DeduplicateOptions{FinishCanceled: tt.finish})
				c := s.connect(t, inMemory, "")
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if got := c.call(ctx, "held", "k", nil); got != context.DeadlineExceeded.Error() {
					t.Fatalf("the first call: %s", got)
				}
				synctest.Wait()
				close(s.hold)
				if got := c.call(t.Context(), "held", "k", nil); got != tt.want {
					t.Errorf("the repeat: %s\nwant %s", got, tt.want)
				}
				if s.ran.Load() != 1 {
					t.Errorf("ran %d times", s.ran.Load())
				}
			})
		})
	}
}

// Who waits for an answer and is cancelled leaves the execution alone.
func TestCanceledWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShopServer(nil, nil)
		c := s.connect(t, inMemory, "")
		first := make(chan string)
		go func() { first <- c.call(t.Context(), "held", "k", nil) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got := c.call(ctx, "held", "k", nil); got != context.DeadlineExceeded.Error() {
			t.Errorf("the waiter: %s", got)
		}
		close(s.hold)
		if got := <-first; got != "held" {
			t.Errorf("the first: %s", got)
		}
	})
}

func TestDeduplicateWithoutStore(t *testing.T) {
	store := &broken{Store: idempotency.NewMemory(nil), put: errors.New("secret path")}
	s := newShopServer(store, nil)
	c := s.connect(t, inMemory, "")
	const want = `-32603 not executed: the earlier idempotency keys cannot be looked up {"idempotency":"store"}`
	if got := c.call(t.Context(), "order", "k", nil); got != want || s.ran.Load() != 0 {
		t.Errorf("got %s, ran %d times", got, s.ran.Load())
	}
	if got := c.call(t.Context(), "order", nil, nil); got != "order 1" {
		t.Errorf("without a key: %s", got)
	}
}

func TestDeduplicateLargeAnswers(t *testing.T) {
	s := newShopServer(nil, &idempotency.DeduplicateOptions{Ledger: idempotency.LedgerOptions{MaxAnswer: 10}})
	c := s.connect(t, inMemory, "")
	const want = `-32603 an earlier call with this idempotency key was executed and answered, but its answer was not kept; it is not executed again {"idempotency":"not_kept"}`
	if got := c.call(t.Context(), "order", "k", nil); got != "order 1" {
		t.Errorf("got %s", got)
	}
	if got := c.call(t.Context(), "order", "k", nil); got != want {
		t.Errorf("got %s", got)
	}
}

// A server and a client can share a store, as a gateway's do.
func TestSharedByBothEnds(t *testing.T) {
	store := idempotency.NewMemory(nil)
	s := newShopServer(store, nil)
	c := s.connect(t, inMemory, "")
	c.call(t.Context(), "order", "k", nil)
	l := idempotency.NewLedger(store, nil)
	ticket, err := l.Begin(t.Context(), idempotency.Call{Tool: "order", Key: "k", Fingerprint: idempotency.Fingerprint{1}})
	if told(ticket, err) != "send" {
		t.Errorf("the client's call with the key of a served one: %s", told(ticket, err))
	}
}

func TestAnnounced(t *testing.T) {
	for over, connection := range connections {
		t.Run(over, func(t *testing.T) {
			c := newShopServer(nil, nil).connect(t, connection, "ann")
			if name, ok := idempotency.Announced(c.InitializeResult().Capabilities); name != idempotency.MetaKey || !ok {
				t.Errorf("announced %q", name)
			}
		})
	}
	mine := map[string]any{"x": 1}
	c := &mcp.ServerCapabilities{Experimental: mine}
	idempotency.Announce(c, "")
	if name, ok := idempotency.Announced(c); name != idempotency.MetaKey || !ok || len(mine) != 1 || len(c.Experimental) != 2 {
		t.Errorf("Announce made %v of %v", c.Experimental, mine)
	}
	for name, none := range map[string]*mcp.ServerCapabilities{
		"nil": nil, "nothing": {}, "another form": {Experimental: map[string]any{idempotency.Capability: true}},
		"no name": {Experimental: map[string]any{idempotency.Capability: map[string]any{"metaKey": 1}}},
	} {
		if got, ok := idempotency.Announced(none); got != "" || ok {
			t.Errorf("%s announces %q", name, got)
		}
	}
}
