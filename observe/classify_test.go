package observe_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/surecall/surecall/observe"
)

const (
	v2025 = "2025-11-25"
	v2026 = "2026-07-28"
)

var (
	versions = []string{v2025, v2026}
	strict   = &observe.Reading{Strict: true}
)

const (
	goodResult = `{"content":[{"type":"text","text":"ok"}],"isError":false}`
	good       = `{"jsonrpc":"2.0","id":1,"result":` + goodResult + `}`
	rpcError   = `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"synthetic invalid params"}}`
)

// withResult is a response to request 1 with this result.
func withResult(result string) string { return `{"jsonrpc":"2.0","id":1,"result":` + result + `}` }

// withError is a response to request 1 with this error.
func withError(err string) string { return `{"jsonrpc":"2.0","id":1,"error":` + err + `}` }

// ok is an HTTP 200 answer to request 1.
func ok(body, version string) observe.Answer {
	return observe.Answer{Status: 200, Body: []byte(body), ID: "1", ProtocolVersion: version}
}

// expect fails the test unless the verdict is as wanted and coherent in itself.
func expect(t *testing.T, v observe.Verdict, outcome observe.Outcome, delivery observe.Delivery, deviations ...observe.Deviation) {
	t.Helper()
	if v.Outcome != outcome || v.Delivery != delivery {
		t.Errorf("got %s/%s (%s), want %s/%s", v.Outcome, v.Delivery, v.Reason, outcome, delivery)
	}
	if !slices.Equal(v.Deviations, deviations) {
		t.Errorf("deviations %v, want %v", v.Deviations, deviations)
	}
	if (v.Reason == "") != outcome.Usable() {
		t.Errorf("outcome %s with reason %q", v.Outcome, v.Reason)
	}
}

// The eleven cases of the article that this project started from, with its
// expected values.
func TestSeedCases(t *testing.T) {
	complete := `{"resultType":"complete","content":[{"type":"text","text":"ok"}],"isError":false}`
	cases := []struct {
		name    string
		status  int
		body    string
		layer   observe.Layer
		outcome observe.Outcome
		code    int64
	}{
		{"baseline complete", 200, withResult(complete), observe.LayerApplication, observe.ToolSuccess, 0},
		{"503 then 200, first", 503, `{"note":"synthetic outage"}`, observe.LayerTransport, observe.HTTPError, 0},
		{"503 then 200, second", 200, withResult(complete), observe.LayerApplication, observe.ToolSuccess, 0},
		{"HTTP 200 + JSON-RPC error", 200, rpcError, observe.LayerProtocol, observe.JSONRPCError, -32602},
		{"HTTP 200 + tool isError", 200, withResult(`{"resultType":"complete","content":[{"type":"text","text":"failed"}],"isError":true}`), observe.LayerApplication, observe.ToolError, 0},
		{"HTTP 500 with success-looking body", 500, withResult(complete), observe.LayerTransport, observe.HTTPError, 0},
		{"malformed JSON", 200, `{unclosed`, observe.LayerProtocol, observe.MalformedJSON, 0},
		{"result and error together", 200, `{"jsonrpc":"2.0","id":1,"result":` + complete + `,"error":{"code":-32602,"message":"synthetic invalid params"}}`, observe.LayerProtocol, observe.InvalidEnvelope, -32602},
		{"wrong JSON-RPC id", 200, `{"jsonrpc":"2.0","id":99,"result":` + complete + `}`, observe.LayerProtocol, observe.InvalidEnvelope, 0},
		{"input_required is not completion", 200, withResult(`{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form","message":"synthetic input"}}}}`), observe.LayerInteraction, observe.InputRequired, 0},
		{"legacy result without resultType", 200, withResult(`{"content":[{"type":"text","text":"legacy ok"}],"isError":false}`), observe.LayerApplication, observe.ToolSuccess, 0},
		{"invalid tool content shape", 200, withResult(`{"resultType":"complete","content":"not-an-array","isError":false}`), observe.LayerProtocol, observe.InvalidToolResult, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v := observe.Classify(observe.Answer{Status: c.status, Body: []byte(c.body), ID: "1", ProtocolVersion: v2026}, nil)
			var code int64
			if v.Error != nil {
				code = v.Error.Code
			}
			if v.Layer() != c.layer || v.Outcome != c.outcome || code != c.code {
				t.Errorf("got %s %s code %d, want %s %s code %d", v.Layer(), v.Outcome, code, c.layer, c.outcome, c.code)
			}
		})
	}
}

func TestClassifyStatus(t *testing.T) {
	withCode := func(id string, code int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"m"}}`, id, code)
	}
	cases := []struct {
		name     string
		status   int
		session  bool
		body     string
		outcome  observe.Outcome
		delivery observe.Delivery
		code     int64 // 0: no error kept
		echoed   bool
	}{
		{"informational", 101, false, "", observe.HTTPError, observe.Unknown, 0, false},
		{"no status", 0, false, good, observe.HTTPError, observe.Unknown, 0, true},
		{"301", 301, false, "", observe.Redirected, observe.Unknown, 0, false},
		{"302", 302, false, "", observe.Redirected, observe.Unknown, 0, false},
		{"303", 303, false, "", observe.Redirected, observe.Unknown, 0, false},
		{"304", 304, false, "", observe.Redirected, observe.Unknown, 0, false},
		{"307", 307, false, "", observe.Redirected, observe.Refused, 0, false},
		{"308", 308, false, "", observe.Redirected, observe.Refused, 0, false},
		{"400", 400, false, "", observe.HTTPError, observe.Refused, 0, false},
		{"400 with an error", 400, false, rpcError, observe.HTTPError, observe.Refused, -32602, true},
		{"401 with HTML", 401, false, "<html>", observe.HTTPError, observe.Refused, 0, false},
		{"404 without session", 404, false, "", observe.HTTPError, observe.Refused, 0, false},
		{"404 with session", 404, true, "not found", observe.SessionLost, observe.Refused, 0, false},
		{"404 with session, method not found", 404, true, withCode("1", -32601), observe.HTTPError, observe.Refused, -32601, true},
		{"404 with session, invalid params", 404, true, withCode("1", -32602), observe.HTTPError, observe.Refused, -32602, true},
		{"404 with session, another id", 404, true, withCode("2", -32601), observe.SessionLost, observe.Refused, 0, false},
		{"404 with session, id null", 404, true, withCode("null", -32601), observe.SessionLost, observe.Refused, -32601, false},
		{"404 with session, another code", 404, true, withCode("1", -32001), observe.SessionLost, observe.Refused, -32001, true},
		{"404 with session, no jsonrpc", 404, true, `{"id":1,"error":{"code":-32601,"message":"m"}}`, observe.SessionLost, observe.Refused, 0, true},
		{"409", 409, false, "", observe.HTTPError, observe.Unknown, 0, false},
		{"409 with a refusing code", 409, false, withCode("1", -32600), observe.HTTPError, observe.Refused, -32600, true},
		{"409 with a refusing code, id null", 409, false, withCode("null", -32700), observe.HTTPError, observe.Refused, -32700, false},
		{"409 with a refusing code, no id", 409, false, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}`, observe.HTTPError, observe.Refused, -32700, false},
		{"409 with a refusing code, another id", 409, false, withCode("2", -32600), observe.HTTPError, observe.Unknown, 0, false},
		{"409 with a refusing code beside a result", 409, false, `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":-32600,"message":"m"}}`, observe.HTTPError, observe.Unknown, 0, true},
		{"409 with a refusing code and a method", 409, false, `{"jsonrpc":"2.0","id":1,"method":"x","error":{"code":-32600,"message":"m"}}`, observe.HTTPError, observe.Unknown, 0, true},
		{"409 with two errors", 409, false, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"m"},"error":{"code":1,"message":"m"}}`, observe.HTTPError, observe.Unknown, 0, true},
		{"409 with two codes", 409, false, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"code":-32600,"message":"m"}}`, observe.HTTPError, observe.Unknown, 0, true},
		{"409 with two ids", 409, false, `{"jsonrpc":"2.0","id":1,"id":2,"error":{"code":-32600,"message":"m"}}`, observe.HTTPError, observe.Unknown, 0, false},
		{"409 with text behind", 409, false, withCode("1", -32600) + "x", observe.HTTPError, observe.Unknown, 0, false},
		{"409 in another encoding", 409, false, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32600,\"message\":\"\xe9\"}}", observe.HTTPError, observe.Unknown, 0, false},
		{"422 with an executing code", 422, false, withCode("1", -32602), observe.HTTPError, observe.Unknown, -32602, true},
		{"429", 429, false, "slow down", observe.HTTPError, observe.Refused, 0, false},
		{"500 with a refusing code", 500, false, withCode("1", -32601), observe.HTTPError, observe.Unknown, -32601, true},
		{"503", 503, false, "", observe.HTTPError, observe.Unknown, 0, false},
		{"511", 511, false, "", observe.HTTPError, observe.Refused, 0, false},
		{"599 with a good body", 599, false, good, observe.HTTPError, observe.Unknown, 0, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v := observe.Classify(observe.Answer{Status: c.status, Body: []byte(c.body), ID: "1", HadSession: c.session}, nil)
			expect(t, v, c.outcome, c.delivery)
			if (v.Error != nil) != (c.code != 0) || v.Error != nil && v.Error.Code != c.code {
				t.Errorf("error %+v, want code %d", v.Error, c.code)
			}
			if v.EchoedID != c.echoed {
				t.Errorf("echoed id: %v", v.EchoedID)
			}
			if v.Result != nil {
				t.Errorf("a result of an HTTP error: %s", v.Result)
			}
		})
	}
}

func TestClassifyNoBody(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
	}{{"empty", 200, ""}, {"blank", 200, " \r\n\t"}, {"202", 202, good}, {"204", 204, ""}, {"202 empty", 202, ""}} {
		t.Run(c.name, func(t *testing.T) {
			expect(t, observe.Classify(observe.Answer{Status: c.status, Body: []byte(c.body), ID: "1"}, nil), observe.StreamIncomplete, observe.Unknown)
		})
	}
}

func TestClassifyContentType(t *testing.T) {
	for _, c := range []struct {
		value   string
		outcome observe.Outcome
	}{
		{"", observe.ToolSuccess},
		{"application/json", observe.ToolSuccess},
		{"Application/JSON; charset=utf-8", observe.ToolSuccess},
		{" application/json ;x", observe.ToolSuccess},
		{"text/html; charset=utf-8", observe.UnexpectedContent},
		{"text/event-stream", observe.UnexpectedContent},
		{"application/json-rpc", observe.UnexpectedContent},
		{"application/problem+json", observe.UnexpectedContent},
		{"; application/json", observe.UnexpectedContent},
	} {
		t.Run(c.value, func(t *testing.T) {
			a := ok(good, "")
			a.Header = http.Header{"Content-Type": {c.value}}
			expect(t, observe.Classify(a, nil), c.outcome, map[bool]observe.Delivery{true: observe.Answered, false: observe.Unknown}[c.outcome.Usable()])
		})
	}
}

// envelopeCases hold on every protocol version.
var envelopeCases = []struct {
	name      string
	body      string
	outcome   observe.Outcome
	delivery  observe.Delivery
	deviation observe.Deviation // or empty
}{
	{"a result", good, observe.ToolSuccess, observe.Answered, ""},
	{"members in another order", `{"result":` + goodResult + `,"id":1,"jsonrpc":"2.0"}`, observe.ToolSuccess, observe.Answered, ""},
	{"white space everywhere", " \n{ \"jsonrpc\" : \"2.0\" ,\t\"id\" : 1 , \"result\" : " + goodResult + " } \r\n", observe.ToolSuccess, observe.Answered, ""},
	{"escaped keys and values", `{"\u006asonrpc":"2\u002e0","\u0069d":1,"result":{"\u0063ontent":[],"\u0069sError":false}}`, observe.ToolSuccess, observe.Answered, ""},

	{"an array", `[` + good + `]`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"a string", `"x"`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"null", `null`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"an empty object", `{}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"no jsonrpc", `{"id":1,"result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"jsonrpc 1.0", `{"jsonrpc":"1.0","id":1,"result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"jsonrpc a number", `{"jsonrpc":2.0,"id":1,"result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"no id", `{"jsonrpc":"2.0","result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"id null", `{"jsonrpc":"2.0","id":null,"result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"id a string", `{"jsonrpc":"2.0","id":"1","result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"id another number", `{"jsonrpc":"2.0","id":2,"result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"id a fraction that the SDK cuts off", `{"jsonrpc":"2.0","id":1.5,"result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"id beyond double precision", `{"jsonrpc":"2.0","id":1.00000000000000000001,"result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"id negative", `{"jsonrpc":"2.0","id":-1,"result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"id true", `{"jsonrpc":"2.0","id":true,"result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"id an array", `{"jsonrpc":"2.0","id":[1],"result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"id 1.0", `{"jsonrpc":"2.0","id":1.0,"result":` + goodResult + `}`, observe.ToolSuccess, observe.Answered, observe.DeviationIDForm},
	{"id 1e0", `{"jsonrpc":"2.0","id":1e0,"result":` + goodResult + `}`, observe.ToolSuccess, observe.Answered, observe.DeviationIDForm},
	{"id 0.1e1", `{"jsonrpc":"2.0","id":0.1e1,"result":` + goodResult + `}`, observe.ToolSuccess, observe.Answered, observe.DeviationIDForm},
	{"id 10e-1", `{"jsonrpc":"2.0","id":10E-1,"result":` + goodResult + `}`, observe.ToolSuccess, observe.Answered, observe.DeviationIDForm},
	{"id with an exponent beyond use", `{"jsonrpc":"2.0","id":1e99999999999,"result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"a method beside the result", `{"jsonrpc":"2.0","id":1,"method":"x","result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"a method null beside the result", `{"jsonrpc":"2.0","id":1,"method":null,"result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"a notification", `{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"an unknown member", `{"jsonrpc":"2.0","id":1,"meta":{},"result":` + goodResult + `}`, observe.ToolSuccess, observe.Answered, observe.DeviationUnknownMember},
	{"an unknown member twice", `{"jsonrpc":"2.0","x":1,"id":1,"x":2,"result":` + goodResult + `}`, observe.ToolSuccess, observe.Answered, observe.DeviationUnknownMember},

	{"neither result nor error", `{"jsonrpc":"2.0","id":1}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"error null alone", `{"jsonrpc":"2.0","id":1,"error":null}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"error null beside a result", `{"jsonrpc":"2.0","id":1,"error":null,"result":` + goodResult + `}`, observe.ToolSuccess, observe.Answered, observe.DeviationErrorNull},
	{"error null beside a tool error", `{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true},"error":null}`, observe.ToolError, observe.Answered, observe.DeviationErrorNull},
	{"result null", withResult(`null`), observe.InvalidToolResult, observe.Unknown, ""},
	{"result null beside an error", `{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":-1,"message":"m"}}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"error false beside a result", `{"jsonrpc":"2.0","id":1,"result":` + goodResult + `,"error":false}`, observe.InvalidEnvelope, observe.Unknown, ""},

	{"an error", rpcError, observe.JSONRPCError, observe.Answered, ""},
	{"an error with data", withError(`{"code":-32603,"message":"m","data":{"code":"x","code":1}}`), observe.JSONRPCError, observe.Answered, ""},
	{"an error with more members", withError(`{"code":1,"message":"m","cause":"x"}`), observe.JSONRPCError, observe.Answered, ""},
	{"a refusing error", withError(`{"code":-32601,"message":"m"}`), observe.JSONRPCError, observe.Refused, ""},
	{"an error of the header check", withError(`{"code":-32020,"message":"m"}`), observe.JSONRPCError, observe.Refused, ""},
	{"the largest code", withError(`{"code":9223372036854775807,"message":"m"}`), observe.JSONRPCError, observe.Answered, ""},
	{"the smallest code", withError(`{"code":-9223372036854775808,"message":"m"}`), observe.JSONRPCError, observe.Answered, ""},
	{"a code beyond int64", withError(`{"code":9223372036854775808,"message":"m"}`), observe.InvalidEnvelope, observe.Unknown, ""},
	{"code -32602.0", withError(`{"code":-32602.0,"message":"m"}`), observe.JSONRPCError, observe.Answered, observe.DeviationCodeForm},
	{"code -32601e0", withError(`{"code":-32601e0,"message":"m"}`), observe.JSONRPCError, observe.Refused, observe.DeviationCodeForm},
	{"code 0", withError(`{"code":0,"message":""}`), observe.JSONRPCError, observe.Answered, ""},
	{"code 1e400", withError(`{"code":1e400,"message":"m"}`), observe.InvalidEnvelope, observe.Unknown, ""},
	{"code 1.5", withError(`{"code":1.5,"message":"m"}`), observe.InvalidEnvelope, observe.Unknown, ""},
	{"code quoted", withError(`{"code":"-32602","message":"m"}`), observe.InvalidEnvelope, observe.Unknown, ""},
	{"code null", withError(`{"code":null,"message":"m"}`), observe.InvalidEnvelope, observe.Unknown, ""},
	{"no code", withError(`{"message":"m"}`), observe.InvalidEnvelope, observe.Unknown, ""},
	{"no message", withError(`{"code":1}`), observe.InvalidEnvelope, observe.Unknown, ""},
	{"message null", withError(`{"code":1,"message":null}`), observe.InvalidEnvelope, observe.Unknown, ""},
	{"an error string", withError(`"boom"`), observe.InvalidEnvelope, observe.Unknown, ""},
	{"an error array", withError(`[]`), observe.InvalidEnvelope, observe.Unknown, ""},
	{"an error with id null", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`, observe.InvalidEnvelope, observe.Unknown, ""},

	{"two ids", `{"jsonrpc":"2.0","id":1,"id":1,"result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"two results", `{"jsonrpc":"2.0","id":1,"result":` + goodResult + `,"result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"two jsonrpc", `{"jsonrpc":"1.0","jsonrpc":"2.0","id":1,"result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"two errors, one null", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"},"error":null}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"an escaped second error", `{"jsonrpc":"2.0","id":1,"error":null,"\u0065rror":{"code":1,"message":"m"},"result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"Error in another case", `{"jsonrpc":"2.0","id":1,"Error":{"code":1,"message":"m"},"result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"only ID in another case", `{"jsonrpc":"2.0","ID":1,"result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"RESULT in another case", `{"jsonrpc":"2.0","id":1,"RESULT":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"result with a long s", `{"jsonrpc":"2.0","id":1,"re` + "\u017f" + `ult":{},"result":` + goodResult + `}`, observe.InvalidEnvelope, observe.Unknown, ""},
	{"Code in another case", withError(`{"code":1,"Code":2,"message":"m"}`), observe.InvalidEnvelope, observe.Unknown, ""},
	{"two codes", withError(`{"code":1,"code":1,"message":"m"}`), observe.InvalidEnvelope, observe.Unknown, ""},
	{"two messages", withError(`{"code":1,"message":"m","message":"n"}`), observe.InvalidEnvelope, observe.Unknown, ""},
	{"two data", withError(`{"code":1,"message":"m","data":1,"data":2}`), observe.InvalidEnvelope, observe.Unknown, ""},
}

func TestClassifyEnvelope(t *testing.T) {
	for _, version := range versions {
		for _, c := range envelopeCases {
			t.Run(version+"/"+c.name, func(t *testing.T) {
				if c.deviation == "" {
					expect(t, observe.Classify(ok(c.body, version), nil), c.outcome, c.delivery)
					return
				}
				expect(t, observe.Classify(ok(c.body, version), nil), c.outcome, c.delivery, c.deviation)
				expect(t, observe.Classify(ok(c.body, version), strict), observe.InvalidEnvelope, observe.Unknown, c.deviation)
				tolerant := &observe.Reading{Strict: true, Tolerate: []observe.Deviation{c.deviation}}
				expect(t, observe.Classify(ok(c.body, version), tolerant), c.outcome, c.delivery, c.deviation)
			})
		}
	}
}

// resultCases hold on every protocol version.
var resultCases = []struct {
	name    string
	result  string
	outcome observe.Outcome
}{
	{"no isError", `{"content":[]}`, observe.ToolSuccess},
	{"isError false", `{"content":[],"isError":false}`, observe.ToolSuccess},
	{"isError true", `{"content":[],"isError":true}`, observe.ToolError},
	{"resultType complete", `{"resultType":"complete","content":[]}`, observe.ToolSuccess},
	{"resultType complete, escaped", `{"resultType":"c\u006fmplete","content":[],"isError":true}`, observe.ToolError},
	{"isError null", `{"content":[],"isError":null}`, observe.InvalidToolResult},
	{"isError a string", `{"content":[],"isError":"true"}`, observe.InvalidToolResult},
	{"isError a number", `{"content":[],"isError":1}`, observe.InvalidToolResult},
	{"no content", `{}`, observe.InvalidToolResult},
	{"no content but structured content", `{"structuredContent":{}}`, observe.InvalidToolResult},
	{"content null", `{"content":null}`, observe.InvalidToolResult},
	{"content an object", `{"content":{}}`, observe.InvalidToolResult},
	{"content a string", `{"content":"[]"}`, observe.InvalidToolResult},
	{"content of a string", `{"content":["text"]}`, observe.InvalidToolResult},
	{"content of null", `{"content":[{},null]}`, observe.InvalidToolResult},
	{"content of an array", `{"content":[[]]}`, observe.InvalidToolResult},
	{"structuredContent an object", `{"content":[],"structuredContent":{"isError":true}}`, observe.ToolSuccess},
	{"structuredContent null", `{"content":[],"structuredContent":null}`, observe.ToolSuccess},
	{"structuredContent a number", `{"content":[],"structuredContent":1e999}`, observe.ToolSuccess},
	{"an unknown member", `{"content":[],"_meta":{"a":1,"a":2}}`, observe.ToolSuccess},
	{"isError within content", `{"content":[{"type":"text","text":"","isError":true,"isError":false}]}`, observe.ToolSuccess},
	{"an array", `[]`, observe.InvalidToolResult},
	{"a string", `"done"`, observe.InvalidToolResult},
	{"true", `true`, observe.InvalidToolResult},

	{"isError twice", `{"content":[],"isError":false,"isError":true}`, observe.InvalidToolResult},
	{"isError twice, escaped", `{"content":[],"isError":false,"\u0069sError":true}`, observe.InvalidToolResult},
	{"isError twice, every character escaped", `{"content":[],"isError":false,"\u0069\u0073\u0045\u0072\u0072\u006f\u0072":true}`, observe.InvalidToolResult},
	{"structuredContent twice, every character escaped", `{"content":[],"structuredContent":1,"\u0073\u0074\u0072\u0075\u0063\u0074\u0075\u0072\u0065\u0064\u0043\u006f\u006e\u0074\u0065\u006e\u0074":2}`, observe.InvalidToolResult},
	{"isError in another case", `{"content":[],"ISERROR":true}`, observe.InvalidToolResult},
	{"isError in another case, escaped", `{"content":[],"isError":false,"\u0049\u0053Error":true}`, observe.InvalidToolResult},
	{"isError with a long s", `{"content":[],"i` + "\u017f" + `Error":true}`, observe.InvalidToolResult},
	{"isError with an escaped long s", `{"content":[],"i\u017fError":true}`, observe.InvalidToolResult},
	{"iserror with a longer name", `{"content":[],"isErrors":true}`, observe.ToolSuccess},
	{"content twice", `{"content":[],"content":[]}`, observe.InvalidToolResult},
	{"resultType twice", `{"resultType":"complete","resultType":"complete","content":[]}`, observe.InvalidToolResult},
	{"resultType in another case", `{"ResultType":"input_required","content":[]}`, observe.InvalidToolResult},
	{"inputRequests twice", `{"content":[],"inputRequests":{},"inputRequests":{}}`, observe.InvalidToolResult},
	{"requestState twice", `{"content":[],"requestState":"","requestState":""}`, observe.InvalidToolResult},
	{"structuredContent twice", `{"content":[],"structuredContent":1,"structuredContent":2}`, observe.InvalidToolResult},
}

func TestClassifyResult(t *testing.T) {
	for _, version := range append(versions, "") {
		for _, c := range resultCases {
			t.Run(version+"/"+c.name, func(t *testing.T) {
				delivery := observe.Unknown
				if c.outcome.Usable() {
					delivery = observe.Answered
				}
				for _, r := range []*observe.Reading{nil, {}, strict} {
					v := observe.Classify(ok(withResult(c.result), version), r)
					expect(t, v, c.outcome, delivery)
					if string(v.Result) != c.result {
						t.Errorf("result %s", v.Result)
					}
				}
			})
		}
	}
}

func TestClassifyResultType(t *testing.T) {
	extension := &observe.Reading{ResultTypes: []string{"task"}}
	strictExtension := &observe.Reading{Strict: true, ResultTypes: []string{"task"}}
	undefined := []observe.Deviation{observe.DeviationResultType}
	cases := []struct {
		name       string
		version    string
		reading    *observe.Reading
		result     string
		outcome    observe.Outcome
		deviations []observe.Deviation
	}{
		{"input_required", v2026, nil, `{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"roots/list"}},"requestState":"s"}`, observe.InputRequired, nil},
		{"input_required, version unknown", "", nil, `{"resultType":"input_required"}`, observe.InputRequired, nil},
		{"input_required, a later version", "2027-01-01", nil, `{"resultType":"input_required"}`, observe.InputRequired, nil},
		{"input_required, requests null", v2026, nil, `{"resultType":"input_required","inputRequests":null}`, observe.InputRequired, nil},
		{"input_required, requests an array", v2026, nil, `{"resultType":"input_required","inputRequests":[]}`, observe.InvalidToolResult, nil},
		{"input_required, requests a string", v2026, nil, `{"inputRequests":"a","resultType":"input_required"}`, observe.InvalidToolResult, nil},
		{"input_required, state null", v2026, nil, `{"resultType":"input_required","requestState":null}`, observe.InvalidToolResult, nil},
		{"input_required, state an object", v2026, nil, `{"resultType":"input_required","requestState":{}}`, observe.InvalidToolResult, nil},
		{"input_required with isError", v2026, nil, `{"resultType":"input_required","isError":true,"content":[]}`, observe.InputRequired, nil},
		{"input_required before rounds", v2025, nil, `{"resultType":"input_required","content":[]}`, observe.InvalidToolResult, nil},
		{"input_required before rounds, declared", v2025, &observe.Reading{ResultTypes: []string{"input_required"}}, `{"resultType":"input_required","content":[]}`, observe.InvalidToolResult, nil},
		{"another value", v2026, nil, `{"resultType":"partial","content":[]}`, observe.InvalidToolResult, nil},
		{"another value, tolerated before rounds only", v2026, &observe.Reading{Tolerate: undefined}, `{"resultType":"partial","content":[]}`, observe.InvalidToolResult, nil},
		{"an empty value", v2026, nil, `{"resultType":"","content":[]}`, observe.InvalidToolResult, nil},
		{"an empty value, declared by a careless host", v2026, &observe.Reading{ResultTypes: []string{""}}, `{"resultType":null,"content":[]}`, observe.InvalidToolResult, nil},
		{"another case", v2026, nil, `{"resultType":"Complete","content":[]}`, observe.InvalidToolResult, nil},
		{"null", v2026, nil, `{"resultType":null,"content":[]}`, observe.InvalidToolResult, nil},
		{"a number", v2026, nil, `{"resultType":1,"content":[]}`, observe.InvalidToolResult, nil},
		{"another value before rounds", v2025, nil, `{"resultType":"partial","content":[]}`, observe.ToolSuccess, undefined},
		{"another value before rounds, isError", v2025, nil, `{"resultType":"partial","content":[],"isError":true}`, observe.ToolError, undefined},
		{"another value before rounds, no content", v2025, nil, `{"resultType":"partial"}`, observe.InvalidToolResult, undefined},
		{"a number before rounds", v2025, nil, `{"resultType":1,"content":[]}`, observe.ToolSuccess, undefined},
		{"null before rounds", v2025, nil, `{"resultType":null,"content":[]}`, observe.ToolSuccess, undefined},
		{"another value before rounds, strict", v2025, strict, `{"resultType":"partial","content":[]}`, observe.InvalidToolResult, undefined},
		{"an extension's", v2026, extension, `{"resultType":"task","task":{}}`, observe.ExtensionResult, nil},
		{"an extension's, strict", v2026, strictExtension, `{"resultType":"task"}`, observe.ExtensionResult, nil},
		{"an extension's before rounds", v2025, extension, `{"resultType":"task","content":"x","isError":7}`, observe.ExtensionResult, nil},
		{"another than the extension's", v2026, extension, `{"resultType":"tasks","content":[]}`, observe.InvalidToolResult, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			delivery := observe.Unknown
			if c.outcome.Usable() {
				delivery = observe.Answered
			}
			expect(t, observe.Classify(ok(withResult(c.result), c.version), c.reading), c.outcome, delivery, c.deviations...)
		})
	}
}

func TestVerdictDetail(t *testing.T) {
	v := observe.Classify(ok(withResult(`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list","x":{}},"b":{"method":"x"}},"isError":true}`), v2026), nil)
	if v.ResultType != "input_required" || v.InputRequests != 2 || v.IsError == nil || !*v.IsError || !v.EchoedID {
		t.Errorf("input required: %+v", v)
	}
	v = observe.Classify(ok(good, v2026), nil)
	if v.ResultType != "" || v.IsError == nil || *v.IsError || v.Error != nil || string(v.Result) != goodResult {
		t.Errorf("success: %+v", v)
	}
	v = observe.Classify(ok(withResult(`{"content":[]}`), v2026), nil)
	if v.IsError != nil {
		t.Errorf("isError is absent, not %v", *v.IsError)
	}
	v = observe.Classify(ok(withError(`{"code":7,"message":"a \"b\" \u00e9","data":{"k":[1]}}`), v2026), nil)
	if e := v.Error; e == nil || e.Code != 7 || e.Message != `a "b" é` || string(e.Data) != `{"k":[1]}` {
		t.Errorf("error: %+v", e)
	}
	v = observe.Classify(ok(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`, v2026), nil)
	if v.Error == nil || v.EchoedID {
		t.Errorf("an error that is kept beside a wrong id: %+v", v)
	}
	v = observe.Classify(ok(`{"jsonrpc":"2.0","id":1,"x":1,"result":{"resultType":"y","content":[]},"error":null}`, v2025), nil)
	expect(t, v, observe.ToolSuccess, observe.Answered, observe.DeviationUnknownMember, observe.DeviationErrorNull, observe.DeviationResultType)
}

func TestClassifyIDs(t *testing.T) {
	for _, c := range []struct {
		request, response string
		match             bool
	}{
		{`7`, `7`, true}, {`7`, `7.0`, true}, {`7`, `70e-1`, true}, {`7`, `"7"`, false}, {`"7"`, `7`, false},
		{`0`, `-0`, true}, {`0`, `1e99999999999`, false}, {`0`, `1e-99999999999`, false}, {`0`, `0e5`, true}, {`100`, `1e2`, true}, {`100`, `1e3`, false}, {`100`, `10`, false}, {`7`, `-7`, false},
		{`9007199254740993`, `9007199254740992`, false}, {`9007199254740993`, `9007199254740993`, true},
		{`"a"`, `"a"`, true}, {`"a"`, `"\u0061"`, true}, {`"\u0061"`, `"a"`, true}, {`"a"`, `"A"`, false}, {`"a"`, `"ab"`, false},
		{`""`, `""`, true}, {`""`, `null`, false}, {`"null"`, `null`, false}, {`1`, `{}`, false}, {``, `null`, false}, {``, `""`, false},
	} {
		t.Run(c.request+" "+c.response, func(t *testing.T) {
			a := ok(`{"jsonrpc":"2.0","id":`+c.response+`,"result":`+goodResult+`}`, "")
			a.ID = c.request
			if v := observe.Classify(a, nil); v.EchoedID != c.match || (v.Outcome == observe.ToolSuccess) != c.match {
				t.Errorf("echoed %v, outcome %s", v.EchoedID, v.Outcome)
			}
		})
	}
}

func TestClassifyOtherMethods(t *testing.T) {
	for _, c := range []struct {
		name, body string
		outcome    observe.Outcome
	}{
		{"an empty result", withResult(`{}`), observe.ToolSuccess},
		{"a list", withResult(`{"tools":[],"content":1,"content":2,"isError":"x","resultType":"x"}`), observe.ToolSuccess},
		{"an error", rpcError, observe.JSONRPCError},
		{"result null", withResult(`null`), observe.InvalidToolResult},
		{"result an array", withResult(`[]`), observe.InvalidToolResult},
		{"wrong id", `{"jsonrpc":"2.0","id":2,"result":{}}`, observe.InvalidEnvelope},
		{"two results", `{"jsonrpc":"2.0","id":1,"result":{},"result":{}}`, observe.InvalidEnvelope},
		{"cut", `{"jsonrpc":"2.0","id":1,"result":{}`, observe.MalformedJSON},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := ok(c.body, v2026)
			a.Method = "tools/list"
			v := observe.Classify(a, nil)
			if v.Outcome != c.outcome {
				t.Errorf("got %s (%s), want %s", v.Outcome, v.Reason, c.outcome)
			}
			a.Method = "tools/call"
			if c.outcome == observe.ToolSuccess && observe.Classify(a, nil).Outcome != observe.InvalidToolResult {
				t.Error("the same is a tool result")
			}
		})
	}
}

func TestClassifyAllocations(t *testing.T) {
	for _, kind := range bodies(1 << 16) {
		a := ok(string(kind.body), v2026)
		if n := testing.AllocsPerRun(20, func() { observe.Classify(a, nil) }); n > 0 {
			t.Errorf("%s: %v allocations for a success", kind.name, n)
		}
	}
	a := ok(good, v2026) // has isError, whose value is given by a pointer
	if n := testing.AllocsPerRun(20, func() { observe.Classify(a, nil) }); n > 1 {
		t.Errorf("isError: %v allocations", n)
	}
}

// Many escapes, keys, or levels must not cost more than their length.
func TestClassifyHostile(t *testing.T) {
	const n = 1 << 20
	for _, c := range []struct{ name, body string }{
		{"escapes", withResult(`{"content":[{"text":"` + strings.Repeat(`\"`, n) + `"}]}`)},
		{"escaped keys", withResult(`{"content":[],` + strings.Repeat(`"\u0078":1,`, n/8) + `"y":1}`)},
		{"levels", strings.Repeat("[", n)},
		{"digits of an id", `{"jsonrpc":"2.0","id":1.` + strings.Repeat("0", n) + `,"result":{"content":[]}}`},
		{"digits of a code", withError(`{"code":` + strings.Repeat("9", n) + `,"message":""}`)},
		{"an exponent of a code", withError(`{"code":1e2147483647,"message":""}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if v := observe.Classify(ok(c.body, v2026), nil); v.Outcome == "" {
				t.Error("no outcome")
			}
		})
	}
}
