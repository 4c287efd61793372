package middlewaretest

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

const paramHeaderPrefix = "Mcp-Param-"

func isParamHeader(name string) bool {
	return len(name) > len(paramHeaderPrefix) && strings.EqualFold(name[:len(paramHeaderPrefix)], paramHeaderPrefix)
}

// contradicted answers a request of a 2026-07-28 client whose headers say
// something else than its body: -32020 with 400 (MCP 2026-07-28, Streamable
// HTTP). Headers that are missing altogether are let pass, except those that a
// tool's schema asks for, so that a request can be written by hand.
func (x *exchange) contradicted() bool {
	if !x.s.opts.stateless() {
		return false
	}
	text := x.contradiction()
	if text != "" {
		x.refuse(http.StatusBadRequest, codeHeaderMismatch, "header mismatch: "+text, nil)
	}
	return text != ""
}

func (x *exchange) contradiction() string {
	h := x.r.Header
	switch {
	case differs(h.Get("Mcp-Method"), x.msg.Method):
		return "Mcp-Method"
	case differs(h.Get("Mcp-Name"), x.p.Name):
		return "Mcp-Name"
	case x.p.Meta != nil && differs(h.Get("Mcp-Protocol-Version"), x.p.metaString(metaVersion)):
		return "Mcp-Protocol-Version"
	case x.msg.Method == "tools/call":
		tool := x.s.tools.get(x.p.Name)
		return paramContradiction(tool.InputSchema, x.p.Arguments, h)
	}
	return ""
}

func differs(header, body string) bool { return header != "" && body != "" && header != body }

// property is what a schema says about one argument and its header.
type property struct {
	Header     string              `json:"x-mcp-header"`
	Properties map[string]property `json:"properties"`
}

// paramContradiction names the first Mcp-Param-* header that does not carry its
// argument's value, or "".
func paramContradiction(schema, arguments json.RawMessage, h http.Header) string {
	var p property
	if json.Unmarshal(schema, &p) != nil {
		return ""
	}
	return p.contradiction(arguments, h)
}

func (p *property) contradiction(value json.RawMessage, h http.Header) string {
	if p.Header != "" {
		name := paramHeaderPrefix + p.Header
		if want, ok := primitive(value); (ok || h.Get(name) != "") && !carries(h.Get(name), want) {
			return name
		}
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(orNull(value), &members)
	for name, inner := range p.Properties {
		if text := inner.contradiction(members[name], h); text != "" {
			return text
		}
	}
	return ""
}

// primitive returns a string, an integer or a boolean as the text that its
// header has to carry; ok is false for everything else, which has no header.
func primitive(value json.RawMessage) (text string, ok bool) {
	var v any
	if json.Unmarshal(orNull(value), &v) != nil {
		return "", false
	}
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		if v == float64(int64(v)) {
			return strconv.FormatInt(int64(v), 10), true
		}
	}
	return "", false
}

// carries reports whether a header, which may be in the specification's base64
// form, carries a text.
func carries(header, text string) bool {
	if inner, ok := strings.CutPrefix(header, "=?base64?"); ok && strings.HasSuffix(inner, "?=") {
		b, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, "?="))
		return err == nil && string(b) == text
	}
	return header == text
}
