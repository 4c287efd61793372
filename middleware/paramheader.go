package middleware

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// paramHeaderPrefix begins the headers that mirror arguments (MCP 2026-07-28,
// Streamable HTTP, "Custom Headers from Tool Parameters").
const paramHeaderPrefix = "Mcp-Param-"

// paramHeaders says which arguments of a tool are mirrored in headers.
type paramHeaders struct {
	bindings []paramBinding
}

type paramBinding struct {
	path   []string // of properties
	header string
}

// headerSchema is what is looked at of an input schema.
type headerSchema struct {
	Type       string                  `json:"type"`
	Header     json.RawMessage         `json:"x-mcp-header"`
	Properties map[string]headerSchema `json:"properties"`
}

// paramHeadersOf reads a tool's definition. ok is false for one that breaks the rules,
// which a client has to reject.
func paramHeadersOf(t *mcp.Tool) (h *paramHeaders, ok bool) {
	raw, err := json.Marshal(t.InputSchema)
	if err != nil {
		return nil, false
	}
	var schema headerSchema
	if json.Unmarshal(raw, &schema) != nil {
		return nil, false
	}
	h = &paramHeaders{}
	return h, h.add(schema.Properties, nil, map[string]bool{})
}

// add takes in properties and what is within them.
func (h *paramHeaders) add(properties map[string]headerSchema, path []string, seen map[string]bool) bool {
	for name, p := range properties {
		at := append(path[:len(path):len(path)], name)
		if p.Header != nil {
			var header string
			if json.Unmarshal(p.Header, &header) != nil || !isToken(header) || !isPrimitive(p.Type) || seen[strings.ToLower(header)] {
				return false
			}
			seen[strings.ToLower(header)] = true
			h.bindings = append(h.bindings, paramBinding{at, paramHeaderPrefix + header})
		}
		if !h.add(p.Properties, at, seen) {
			return false
		}
	}
	return true
}

func isPrimitive(typ string) bool { return typ == "string" || typ == "integer" || typ == "boolean" }

// isToken reports whether s is a token (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// apply returns h with the headers for these arguments in the place of those that it
// holds; h itself stays as it is.
func (p *paramHeaders) apply(h http.Header, arguments any) http.Header {
	h = h.Clone()
	for name := range h {
		if strings.HasPrefix(name, paramHeaderPrefix) {
			delete(h, name)
		}
	}
	values := decoded(arguments)
	for _, b := range p.bindings {
		if text, ok := headerText(valueAt(values, b.path)); ok {
			h.Set(b.header, encodeParam(text))
		}
	}
	return h
}

// decoded are arguments as they are on the wire.
func decoded(arguments any) any {
	raw, err := json.Marshal(arguments)
	if err != nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	return v
}

func valueAt(v any, path []string) any {
	for _, step := range path {
		object, _ := v.(map[string]any)
		v = object[step]
	}
	return v
}

// headerText is the text of a value that a header can mirror: what is absent, null, no
// primitive or no safe integer has no header.
func headerText(v any) (string, bool) {
	const maxSafe = 1<<53 - 1
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case json.Number:
		f, err := v.Float64()
		if err != nil || f != math.Trunc(f) || math.Abs(f) > maxSafe {
			return "", false
		}
		return strconv.FormatInt(int64(f), 10), true
	}
	return "", false
}

const (
	base64Prefix = "=?base64?"
	base64Suffix = "?="
)

// encodeParam writes what cannot stand in a header as it is, or would be taken for
// encoded, in base64.
func encodeParam(text string) string {
	looksEncoded := strings.HasPrefix(text, base64Prefix) && strings.HasSuffix(text, base64Suffix)
	if isASCII(text) && strings.TrimSpace(text) == text && !looksEncoded {
		return text
	}
	return base64Prefix + base64.StdEncoding.EncodeToString([]byte(text)) + base64Suffix
}
