package observe

import (
	"encoding/json"
	"strings"
)

// isFulfillable reports whether a client can be given a server's request for input
// (elicitation, sampling, roots): one with a method, and without a null where the SDK
// follows a pointer, on a goroutine on which nobody can recover (go-sdk v1.8.0: a member
// of inputRequests, a message of a sampling request, an alternative of a schema); nor
// with references in a schema, which MCP keeps flat (elicitation, "requested schema")
// and which may lead in a circle. Everything else the SDK refuses by itself.
func isFulfillable(request []byte) bool {
	var method string
	var members map[string]json.RawMessage
	if json.Unmarshal(request, &members) != nil || json.Unmarshal(members["method"], &method) != nil || method == "" {
		return false
	}
	// The SDK reads names in any case here.
	for name, raw := range members {
		if strings.EqualFold(name, "params") && !isFulfillableParams(raw) {
			return false
		}
	}
	return true
}

func isFulfillableParams(raw []byte) bool {
	var params map[string]json.RawMessage
	if json.Unmarshal(raw, &params) != nil {
		return false
	}
	for name, value := range params {
		switch {
		case strings.EqualFold(name, "messages"), strings.EqualFold(name, "tools"):
			var list []json.RawMessage
			if json.Unmarshal(value, &list) != nil || hasNull(list) {
				return false
			}
		case strings.EqualFold(name, "requestedSchema"):
			var schema any
			if json.Unmarshal(value, &schema) != nil || !isFlat(schema) {
				return false
			}
		}
	}
	return true
}

func hasNull(list []json.RawMessage) bool {
	for _, value := range list {
		if token(value).isNull() {
			return true
		}
	}
	return false
}

// isFlat reports whether nothing in a schema is a null in a list, or a reference.
func isFlat(schema any) bool {
	switch schema := schema.(type) {
	case []any:
		for _, value := range schema {
			if value == nil || !isFlat(value) {
				return false
			}
		}
	case map[string]any:
		for name, value := range schema {
			if strings.EqualFold(name, "$ref") || strings.EqualFold(name, "$dynamicRef") || !isFlat(value) {
				return false
			}
		}
	}
	return true
}
