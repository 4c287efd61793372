package middlewaretest

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Keys of _meta that the server reads or writes.
const (
	metaKey          = "io.github.surecall/idempotency-key"
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaServerInfo   = "io.modelcontextprotocol/serverInfo"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
)

// JSON-RPC error codes of the server's own, honest answers.
const (
	codeParse              = -32700
	codeInvalidRequest     = -32600
	codeMethodNotFound     = -32601
	codeInvalidParams      = -32602
	codeInternal           = -32603
	codeHeaderMismatch     = -32020
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
)

// A message is one JSON-RPC message of a client: a request, a notification (no
// id) or a response (no method).
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// isRequest reports whether the message wants an answer.
func (m *message) isRequest() bool { return m.Method != "" && len(m.ID) > 0 }

// isResponse reports whether the message answers a request of the server.
func (m *message) isResponse() bool { return m.Method == "" && len(m.ID) > 0 }

// params are the members of params that the server looks at, of all methods
// together.
type params struct {
	Name            string                     `json:"name"`
	Arguments       json.RawMessage            `json:"arguments"`
	Meta            map[string]json.RawMessage `json:"_meta"`
	InputResponses  map[string]json.RawMessage `json:"inputResponses"`
	RequestState    string                     `json:"requestState"`
	ProtocolVersion string                     `json:"protocolVersion"`
	Capabilities    json.RawMessage            `json:"capabilities"`
}

// parseParams reads params as far as it can; what does not fit stays zero, for
// the server answers calls, and does not validate clients.
func parseParams(raw json.RawMessage) params {
	var p params
	if len(raw) > 0 {
		_ = json.Unmarshal(raw, &p)
	}
	return p
}

// metaString returns the string under key in _meta, or "".
func (p *params) metaString(key string) string {
	var s string
	_ = json.Unmarshal(p.Meta[key], &s)
	return s
}

// round is 1 for a call, 2 for its continuation with answers of the user, and so
// on: the state that the server hands out carries the number.
func (p *params) round() int {
	if p.RequestState == "" && p.InputResponses == nil {
		return 1
	}
	n, err := strconv.Atoi(p.RequestState[strings.LastIndexByte(p.RequestState, ':')+1:])
	if err != nil || n < 1 {
		return 2
	}
	return n + 1
}

// response renders a JSON-RPC response with a result.
func response(id, result json.RawMessage) []byte {
	return join(`{"jsonrpc":"2.0","id":`, string(orNull(id)), `,"result":`, string(result), `}`)
}

// errorResponse renders a JSON-RPC error; data may be nil.
func errorResponse(id json.RawMessage, code int, text string, data json.RawMessage) []byte {
	e := join(`{"code":`, strconv.Itoa(code), `,"message":`, quote(text))
	if len(data) > 0 {
		e = append(append(e, `,"data":`...), data...)
	}
	return join(`{"jsonrpc":"2.0","id":`, string(orNull(id)), `,"error":`, string(e), `}}`)
}

// notification renders a JSON-RPC notification.
func notification(method string, params json.RawMessage) []byte {
	return join(`{"jsonrpc":"2.0","method":`, quote(method), `,"params":`, string(params), `}`)
}

// request renders a JSON-RPC request of the server.
func request(id, method string, params json.RawMessage) []byte {
	return join(`{"jsonrpc":"2.0","id":`, quote(id), `,"method":`, quote(method), `,"params":`, string(params), `}`)
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

func join(parts ...string) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// quote renders s as a JSON string.
func quote(s string) string { return string(mustJSON(s)) }

// mustJSON renders a value of the server's own making, which always can be.
func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("middlewaretest: " + err.Error())
	}
	return b
}
