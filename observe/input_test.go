package observe_test

import (
	"testing"

	"github.com/surecall/surecall/observe"
)

// TestInputRequests: each member of inputRequests, and each request of a server, is one
// that a client can be given.
func TestInputRequests(t *testing.T) {
	for request, good := range map[string]bool{
		`{"method":"roots/list"}`:                                                        true,
		`{"method":"elicitation/create","params":[]}`:                                    true,
		`{"method":"sampling/createMessage","params":{"messages":{}}}`:                   true,
		`{"method":"roots/list","params":{}}`:                                            true,
		`{"method":"elicitation/create","params":{"requestedSchema":null}}`:              true,
		`{"method":"sampling/createMessage","params":{"metadata":[null],"messages":[]}}`: true,
		`{"method":"elicitation/create","params":{"requestedSchema":{"properties":{"a":{"type":"string","enum":["x"],"default":null}}}}}`: true,
		`{"method":5}`: false,
		`{"method":"sampling/createMessage","params":{"messages":[{},null]}}`:                        false,
		`{"method":"elicitation/create","params":{"requestedSchema":{"oneOf":[{"\u0024ref":"#"}]}}}`: false,
	} {
		outcome := map[bool]observe.Outcome{true: observe.InputRequired, false: observe.InvalidToolResult}[good]
		if v := observe.Classify(ok(withResult(`{"resultType":"input_required","inputRequests":{"a":`+request+`}}`), v2026), nil); v.Outcome != outcome {
			t.Errorf("%s: %+v", request, v)
		}
		kind, v := observe.ClassifyMessage([]byte(`{"jsonrpc":"2.0","id":1,`+request[1:]), observe.Answer{ID: "2", ProtocolVersion: v2025}, nil)
		if (kind == observe.KindRequest) != good {
			t.Errorf("%s as a message: %s %+v", request, kind, v)
		}
	}
	for _, result := range []string{`{"content":[],"inputRequests":{}}`, `{"content":[],"inputRequests":5}`, `{"resultType":"complete","content":[],"inputRequests":{"a":{"method":"roots/list"}}}`} {
		for _, version := range []string{v2025, v2026} {
			if v := observe.Classify(ok(withResult(result), version), nil); v.Outcome != observe.InvalidToolResult {
				t.Errorf("%s: %+v", result, v)
			}
		}
	}
	if v := observe.Classify(ok(withResult(`{"content":[],"inputRequests":null}`), v2026), nil); v.Outcome != observe.ToolSuccess {
		t.Errorf("null: %+v", v)
	}
}
