package middleware_test

import (
	"errors"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

var toModel = policy.Rule{Settings: policy.Settings{Surface: policy.SurfaceModel}}

func TestModelSeesAProtocolError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(_ int, p posted) (*http.Response, error) {
			return jsonAnswer(200, `{"jsonrpc":"2.0","id":`+string(p.id)+`,"error":{"code":-32602,"message":"date must be ISO; token=abcdef123456"}}`), nil
		}, toModel)
		defer b.session.Close()
		res, rec, err := b.call("pay", 0)
		if err != nil || !res.IsError || rec.Outcome != observe.JSONRPCError {
			t.Fatalf("err %v, result %+v, record %+v", err, res, rec)
		}
		text := res.Content[0].(*mcp.TextContent).Text
		for _, want := range []string{`"pay"`, "date must be ISO", "-32602", "Correct the arguments"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q lacks %q", text, want)
			}
		}
		if strings.Contains(text, "abcdef123456") || rec.ModelText != text {
			t.Errorf("text %q, record's %q", text, rec.ModelText)
		}
		if e, ok := middleware.FailureOf(res); !ok || e.Outcome != observe.JSONRPCError {
			t.Errorf("FailureOf: %v %t", e, ok)
		}
	})
}

// TestModelTextKeepsTheBodyOut: HTTP body text, addresses and causes never reach the
// model.
func TestModelTextKeepsTheBodyOut(t *testing.T) {
	for _, c := range []struct {
		name string
		call func(posted) (*http.Response, error)
		want string
	}{
		{"503", func(posted) (*http.Response, error) { return jsonAnswer(503, "secret stack at 10.1.2.3"), nil }, "It is not known whether it took effect"},
		{"login", func(posted) (*http.Response, error) {
			return jsonAnswer(200, "<form>secret 10.1.2.3</form>", "Content-Type", "text/html"), nil
		}, "sign-in page"},
		{"dial", func(p posted) (*http.Response, error) {
			p.connect(false)
			return nil, errors.New("dial tcp 10.1.2.3:9: secret")
		}, "not sent"},
		{"redirect", func(posted) (*http.Response, error) {
			return jsonAnswer(302, "", "Location", "https://10.1.2.3/secret?q=1"), nil
		}, "redirected"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(_ int, p posted) (*http.Response, error) { return c.call(p) }, toModel)
			defer b.session.Close()
			res, _, err := b.call("pay", 0)
			if err != nil {
				t.Fatal(err)
			}
			text := res.Content[0].(*mcp.TextContent).Text
			if !strings.Contains(text, c.want) || strings.Contains(text, "secret") || strings.Contains(text, "10.1.2.3") || strings.Contains(text, "<") {
				t.Errorf("%s: %q", c.name, text)
			}
		})
	}
}

// TestToolErrorIsUntouched: what the tool says goes through as it is, structured
// content, _meta and all, and passes for nothing else.
func TestToolErrorIsUntouched(t *testing.T) {
	for _, surface := range []policy.Surface{policy.SurfaceCaller, policy.SurfaceModel} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(_ int, p posted) (*http.Response, error) {
				return jsonAnswer(200, `{"jsonrpc":"2.0","id":`+string(p.id)+`,"result":{"_meta":{"a":1},"content":[],"structuredContent":[1],"isError":true}}`), nil
			}, policy.Rule{Settings: policy.Settings{Surface: surface}})
			defer b.session.Close()
			res, rec, err := b.call("pay", 0)
			if err != nil || !res.IsError || len(res.Content) != 0 || res.Meta["a"] != 1.0 || !reflect.DeepEqual(res.StructuredContent, []any{1.0}) {
				t.Errorf("err %v, result %+v", err, res)
			}
			if _, ok := middleware.FailureOf(res); ok || rec.ModelText != "" || rec.Outcome != observe.ToolError {
				t.Errorf("a server's own result passes for ours: %+v", rec)
			}
		})
	}
}

// TestServersErrorCodes: codes that the SDK gives meanings of its own, and a code
// that it cannot read, come back as the server's error.
func TestServersErrorCodes(t *testing.T) {
	for text, code := range map[string]int64{
		"-32003": -32003, "-32004": -32004, "-32005": -32005, "-32602.0": -32602, "1e3": 1000, "7": 7,
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(_ int, p posted) (*http.Response, error) {
				return jsonAnswer(200, `{"jsonrpc":"2.0","id":`+string(p.id)+`,"error":{"code":`+text+`,"message":"m","data":{"d":1}}}`), nil
			})
			defer b.session.Close()
			_, rec, err := b.call("pay", 0)
			var rpc *jsonrpc.Error
			if !errors.As(err, &rpc) || rpc.Code != code || rpc.Message != "m" || string(rpc.Data) != `{"d":1}` {
				t.Errorf("%s: %v", text, err)
			}
			if errors.Is(err, mcp.ErrConnectionClosed) || rec.Outcome != observe.JSONRPCError || rec.Delivery != observe.Answered {
				t.Errorf("%s: %+v", text, rec)
			}
			if _, _, err := b.call("read_weather", 0); errors.Is(err, mcp.ErrConnectionClosed) {
				t.Errorf("%s: the session is gone: %v", text, err)
			}
		})
	}
}

// TestRejectedMarkerNeverShows: the SDK marks transport errors with a JSON-RPC code
// that means "not arrived" (go-sdk v1.8.0).
func TestRejectedMarkerNeverShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(_ int, p posted) (*http.Response, error) {
			p.connect(true)
			return nil, errors.New("reset")
		})
		defer b.session.Close()
		_, _, err := b.call("pay", 0)
		var rpc *jsonrpc.Error
		if errors.As(err, &rpc) {
			t.Errorf("a reset passes for an answer: %v", rpc)
		}
	})
}

func TestCallersParamsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, unavailable(1))
		defer b.session.Close()
		meta := mcp.Meta{"mine": "1", idempotency.MetaKey: "host-key"}
		params := &mcp.CallToolParams{Name: "read_weather", Meta: meta, Arguments: map[string]any{"a": 1}}
		if _, err := b.session.CallTool(t.Context(), params); err != nil {
			t.Fatal(err)
		}
		for _, p := range b.wire.posts {
			if p.params.Meta[idempotency.MetaKey] != "host-key" || p.params.Meta["mine"] != "1" {
				t.Errorf("_meta on the wire %v", p.params.Meta)
			}
		}
		// The SDK writes its own keys into the caller's map; nothing of ours is there.
		own := maps.Clone(meta)
		maps.DeleteFunc(own, func(k string, _ any) bool { return strings.HasPrefix(k, "io.modelcontextprotocol/") })
		if len(own) != 2 || params.InputResponses != nil || params.RequestState != "" {
			t.Errorf("params %+v", params)
		}
		fresh := &mcp.CallToolParams{Name: "read_weather"}
		if _, err := b.session.CallTool(idempotency.WithKey(t.Context(), "ctx-key"), fresh); err != nil {
			t.Fatal(err)
		}
		if _, leaked := fresh.Meta[idempotency.MetaKey]; leaked {
			t.Error("the key was written into the caller's params")
		}
		if got := b.wire.posts[len(b.wire.posts)-1].params.Meta[idempotency.MetaKey]; got != "ctx-key" {
			t.Errorf("key %v", got)
		}
	})
}

func TestRetryOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := true
		b := newBench(t, func(_ int, p posted) (*http.Response, error) {
			if fail {
				return jsonAnswer(500, ""), nil
			}
			return p.answer()
		})
		defer b.session.Close()
		origin := func(want observe.Origin) {
			t.Helper()
			if _, rec, _ := b.call("pay", 0); rec.RetryOrigin != want {
				t.Errorf("origin %s, want %s", rec.RetryOrigin, want)
			}
		}
		origin(observe.OriginNone)
		origin(observe.OriginCaller)
		fail = false
		origin(observe.OriginCaller)
		if _, rec, _ := b.callIn(observe.WithUserRepeat(t.Context()), "pay"); rec.RetryOrigin != observe.OriginUser {
			t.Errorf("origin %s", rec.RetryOrigin)
		}
		time.Sleep(time.Hour)
		origin(observe.OriginNone)
	})
}
