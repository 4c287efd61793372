package observe

import (
	"encoding/json"
	"strings"
)

// isRequest reports whether a member of inputRequests is a request at all. A null would
// end the program (go-sdk v1.8.0).
func isRequest(data []byte) bool {
	var r struct {
		Method string `json:"method"`
	}
	return json.Unmarshal(data, &r) == nil && r.Method != ""
}

// isBearable reports whether the SDK can be given a server's request for input
// (elicitation, sampling, roots): one without a null where it follows a pointer, on a
// goroutine on which nobody can recover (go-sdk v1.8.0: a message of a sampling request, an
// alternative of a schema), and without references in a schema, which MCP keeps flat
// (elicitation, "requested schema") and which may lead in a circle. Everything else the
// SDK refuses by itself.
func isBearable(request []byte) bool {
	// The SDK reads names in any case here.
	for name, raw := range fields(request) {
		if strings.EqualFold(name, "params") && !areBearable(fields(raw)) {
			return false
		}
	}
	return true
}

func areBearable(params map[string]json.RawMessage) bool {
	for name, value := range params {
		switch {
		case strings.EqualFold(name, "messages"), strings.EqualFold(name, "tools"):
			var list []json.RawMessage
			if json.Unmarshal(value, &list) == nil && hasNull(list) {
				return false
			}
		case strings.EqualFold(name, "requestedSchema"):
			var schema any
			if json.Unmarshal(value, &schema) == nil && !isFlat(schema) {
				return false
			}
		}
	}
	return true
}

// fields are the members of an object; none of anything else.
func fields(data []byte) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return nil
	}
	return members
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
