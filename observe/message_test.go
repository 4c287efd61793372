package observe_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/surecall/surecall/observe"
)

func TestClassifyMessage(t *testing.T) {
	cases := []struct {
		name    string
		data    string
		kind    observe.MessageKind
		outcome observe.Outcome // empty: passed on
	}{
		{"a notification", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}`, observe.KindNotification, ""},
		{"a notification, method last", `{"params":{},"jsonrpc":"2.0","method":"notifications/message"}`, observe.KindNotification, ""},
		{"a notification with an unknown member", `{"jsonrpc":"2.0","method":"x","extra":1}`, observe.KindNotification, ""},
		{"a notification with an empty method", `{"jsonrpc":"2.0","method":""}`, observe.KindNotification, ""},
		{"a success", good, observe.KindResponse, observe.ToolSuccess},
		{"a tool error", withResult(`{"content":[],"isError":true}`), observe.KindResponse, observe.ToolError},
		{"an error", rpcError, observe.KindResponse, observe.JSONRPCError},
		{"an invalid result", withResult(`{}`), observe.KindResponse, observe.InvalidToolResult},
		{"result and error", `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`, observe.KindResponse, observe.InvalidEnvelope},
		{"a response to something else", `{"jsonrpc":"2.0","id":2,"result":{"content":[]}}`, observe.KindInvalid, observe.InvalidEnvelope},
		{"an error without id", `{"jsonrpc":"2.0","error":{"code":-32700,"message":""}}`, observe.KindInvalid, observe.InvalidEnvelope},
		{"a batch", `[` + good + `]`, observe.KindInvalid, observe.InvalidEnvelope},
		{"an object of another kind", `{"type":"ping"}`, observe.KindInvalid, observe.InvalidEnvelope},
		{"no JSON", `ping`, observe.KindInvalid, observe.MalformedJSON},
		{"a cut notification", `{"jsonrpc":"2.0","method":"x"`, observe.KindInvalid, observe.MalformedJSON},
		{"two messages", good + "\n" + good, observe.KindInvalid, observe.MalformedJSON},
		{"nothing", ``, observe.KindInvalid, observe.MalformedJSON},
		{"a method null", `{"jsonrpc":"2.0","method":null}`, observe.KindInvalid, observe.InvalidEnvelope},
		{"a method null beside a result", `{"jsonrpc":"2.0","id":1,"method":null,"result":{"content":[]}}`, observe.KindInvalid, observe.InvalidEnvelope},
		{"a method beside a result", `{"jsonrpc":"2.0","id":1,"method":"x","result":{"content":[]}}`, observe.KindInvalid, observe.InvalidEnvelope},
		{"a method beside error null", `{"jsonrpc":"2.0","method":"x","error":null}`, observe.KindInvalid, observe.InvalidEnvelope},
		{"a method in another case beside a result", `{"jsonrpc":"2.0","id":1,"Method":"x","result":{"content":[]}}`, observe.KindInvalid, observe.InvalidEnvelope},
		{"two methods", `{"jsonrpc":"2.0","method":"x","method":"y"}`, observe.KindInvalid, observe.InvalidEnvelope},
		{"a notification without jsonrpc", `{"method":"x"}`, observe.KindInvalid, observe.InvalidEnvelope},
		{"a notification with id null", `{"jsonrpc":"2.0","id":null,"method":"x"}`, observe.KindInvalid, observe.InvalidEnvelope},
		{"a request with a fractional id", `{"jsonrpc":"2.0","id":1.5,"method":"x"}`, observe.KindInvalid, observe.InvalidEnvelope},
		{"a request with an id beyond any type", `{"jsonrpc":"2.0","id":1e400,"method":"x"}`, observe.KindInvalid, observe.InvalidEnvelope},
		{"a request with an object as id", `{"jsonrpc":"2.0","id":{},"method":"x"}`, observe.KindInvalid, observe.InvalidEnvelope},
		{"a notification in another encoding", "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{\"m\":\"\xe9\"}}", observe.KindInvalid, observe.MalformedJSON},
	}
	for _, version := range versions {
		for _, c := range cases {
			t.Run(version+"/"+c.name, func(t *testing.T) {
				kind, v := observe.ClassifyMessage([]byte(c.data), ok("", version), nil)
				if kind != c.kind || v.Outcome != c.outcome {
					t.Errorf("got %s %s (%s), want %s %s", kind, v.Outcome, v.Reason, c.kind, c.outcome)
				}
				if c.outcome != "" && !c.outcome.Answered() && v.Delivery != observe.Unknown {
					t.Errorf("delivery %s", v.Delivery)
				}
			})
		}
	}
}

func TestClassifyMessageServerRequest(t *testing.T) {
	for _, id := range []string{`1`, `"a"`, `1.0`, `-3`} {
		data := []byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"sampling/createMessage","params":{}}`)
		for _, c := range []struct {
			version string
			reading *observe.Reading
			kind    observe.MessageKind
			outcome observe.Outcome
			noted   int
		}{
			{v2025, nil, observe.KindRequest, "", 0},
			{v2025, strict, observe.KindRequest, "", 0},
			{v2026, nil, observe.KindRequest, "", 1},
			{v2026, strict, observe.KindInvalid, observe.InvalidEnvelope, 1},
		} {
			kind, v := observe.ClassifyMessage(data, ok("", c.version), c.reading)
			if kind != c.kind || v.Outcome != c.outcome || len(v.Deviations) != c.noted {
				t.Errorf("%s on %s: got %s %s %v", id, c.version, kind, v.Outcome, v.Deviations)
			}
		}
	}
}

// A response on a stream is judged as one in a body.
func TestClassifyMessageJudgesLikeClassify(t *testing.T) {
	for _, version := range versions {
		for _, c := range envelopeCases {
			kind, got := observe.ClassifyMessage([]byte(c.body), ok("", version), nil)
			if got.Outcome == "" && kind == observe.KindNotification {
				continue
			}
			want := observe.Classify(ok(c.body, version), nil)
			if got.Outcome != want.Outcome || got.Delivery != want.Delivery {
				t.Errorf("%s: %s/%s on a stream, %s/%s in a body", c.name, got.Outcome, got.Delivery, want.Outcome, want.Delivery)
			}
		}
	}
}

func TestEnvelope(t *testing.T) {
	for _, c := range []struct {
		name, data string
		kind       observe.MessageKind
		id, method string
		ok         bool
	}{
		{"a request of the SDK", `{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"x"}}`, observe.KindRequest, "12", "tools/call", true},
		{"its beginning", `{"jsonrpc":"2.0","id":12,"method":"tools/call","par`, observe.KindRequest, "12", "tools/call", true},
		{"what follows is not looked at", `{"jsonrpc":"2.0","id":12,"method":"tools/call",!!!`, observe.KindRequest, "12", "tools/call", true},
		{"a string id", `{"jsonrpc":"2.0","id":"a\"b","method":"ping"}`, observe.KindRequest, `"a\"b"`, "ping", true},
		{"members in another order", `{"params":{"id":9,"method":"no"},"method":"ping","id":3,"jsonrpc":"2.0"}`, observe.KindRequest, "3", "ping", true},
		{"an escaped method", `{"jsonrpc":"2.0","id":1,"method":"tools\/call"}`, observe.KindRequest, "1", "tools/call", true},
		{"a notification", `{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}`, observe.KindNotification, "", "notifications/initialized", true},
		{"a notification with id null", `{"jsonrpc":"2.0","id":null,"method":"notifications/initialized"}`, observe.KindNotification, "", "notifications/initialized", true},
		{"a result", `{"jsonrpc":"2.0","id":1,"result":{"role":"user"}}`, observe.KindResponse, "1", "", true},
		{"an error's beginning", `{"jsonrpc":"2.0","id":1,"error":{"co`, observe.KindResponse, "1", "", true},
		{"a notification's beginning", `{"jsonrpc":"2.0","method":"x","params":{}`, observe.KindInvalid, "", "", false},
		{"an id that may go on", `{"jsonrpc":"2.0","method":"ping","id":12`, observe.KindInvalid, "", "", false},
		{"a method that goes on", `{"jsonrpc":"2.0","id":12,"method":"tools/ca`, observe.KindInvalid, "", "", false},
		{"a batch", `[{"jsonrpc":"2.0","id":12,"method":"tools/call"}]`, observe.KindInvalid, "", "", false},
		{"no JSON-RPC", `{"client_name":"x","id":1,"method":"y"}`, observe.KindInvalid, "", "", false},
		{"another version", `{"jsonrpc":"1.0","id":1,"method":"y"}`, observe.KindInvalid, "", "", false},
		{"a method that is no string", `{"jsonrpc":"2.0","id":1,"method":5}`, observe.KindInvalid, "", "", false},
		{"nothing", ``, observe.KindInvalid, "", "", false},
		{"a form", `grant_type=refresh_token`, observe.KindInvalid, "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			kind, id, method, ok := observe.Envelope([]byte(c.data))
			if kind != c.kind || id != c.id || method != c.method || ok != c.ok {
				t.Errorf("got %s %q %q %v", kind, id, method, ok)
			}
		})
	}
}

// A beginning tells either nothing or the truth.
func TestEnvelopeOfABeginning(t *testing.T) {
	for _, data := range []string{
		`{"jsonrpc":"2.0","id":1234,"method":"tools/call","params":{"name":"x","arguments":{"a":[1,2]}}}`,
		`{ "method" : "tools/call" , "id" : 1234 , "jsonrpc" : "2.0" }`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":"abc","result":{"content":[]}}`,
	} {
		wholeKind, wholeID, wholeMethod, _ := observe.Envelope([]byte(data))
		for n := range data {
			kind, id, method, ok := observe.Envelope([]byte(data[:n]))
			if ok && (kind != wholeKind || id != wholeID || method != wholeMethod) {
				t.Errorf("%q: %s %q %q", data[:n], kind, id, method)
			}
		}
	}
}

// The size of a request is of no matter once its id and method were read.
func TestEnvelopeStopsEarly(t *testing.T) {
	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"m","params":"%s"}`, strings.Repeat("x", 1<<20))
	if n := testing.AllocsPerRun(10, func() { observe.Envelope(body) }); n > 2 {
		t.Errorf("%v allocations", n)
	}
	body[len(body)-2] = 0 // never seen
	if _, _, _, ok := observe.Envelope(body); !ok {
		t.Error("not read")
	}
}

func TestMessageKindString(t *testing.T) {
	seen := map[string]bool{}
	for k := range observe.KindNotification + 2 {
		seen[k.String()] = true
	}
	if len(seen) != 5 { // four kinds and none
		t.Errorf("names: %v", seen)
	}
}
