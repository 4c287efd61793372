package idempotency

import (
	"encoding/json"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Capability is the name, among a server's experimental capabilities, under which
// it says that it executes a call once for each key, and where it looks for the
// key: {"metaKey": "io.github.surecall/idempotency-key"}.
const Capability = "io.github.surecall/idempotency"

// Announce adds [Capability] to a server's capabilities. [Deduplicate] announces
// itself; use it where something else honours the keys. The map of capabilities is
// replaced, not changed. An empty metaKey is [MetaKey].
func Announce(c *mcp.ServerCapabilities, metaKey string) {
	if metaKey == "" {
		metaKey = MetaKey
	}
	experimental := maps.Clone(c.Experimental)
	if experimental == nil {
		experimental = map[string]any{}
	}
	experimental[Capability] = map[string]any{"metaKey": metaKey}
	c.Experimental = experimental
}

// Announced reports whether a server says that it executes a call once for each
// key, and the _meta name under which it looks for the key. It is the server's own
// word: believe it only of a server that you trust. c may be nil.
func Announced(c *mcp.ServerCapabilities) (metaKey string, ok bool) {
	if c == nil {
		return "", false
	}
	settings, _ := c.Experimental[Capability].(map[string]any)
	metaKey, _ = settings["metaKey"].(string)
	return metaKey, metaKey != ""
}

// ServerRefusal reads why a server with [Deduplicate] has not executed a call, from
// the data of its JSON-RPC error: one of [KindUnknown], [KindRunning], [KindMismatch],
// [KindNotKept] and [KindStore], or "" where the error says no such thing. It is the
// server's own word.
func ServerRefusal(data json.RawMessage) Kind {
	var says struct {
		Idempotency Kind `json:"idempotency"`
	}
	if json.Unmarshal(data, &says) != nil || refusals[says.Idempotency] == "" {
		return ""
	}
	return says.Idempotency
}
