package middleware

import (
	"crypto/rand"
	"encoding/json"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// metaProgressToken is where a request asks for progress (MCP, progress).
const metaProgressToken = "progressToken"

// progress is what extends the limits of an attempt's POSTs: notifications with its
// token.
type progress struct {
	token string // as JSON; empty where progress extends nothing
	ours  bool   // nobody above has asked for it
}

// wantProgress gives the attempt a progress token where the policy lets progress extend
// its limits and the caller has not set one. Each attempt has its own: the server may
// still be at work on an earlier one.
func (cl *call) wantProgress() progress {
	if !cl.isTool() || !cl.server.wire || !cl.tool.Limits.Extended() || cl.params() == nil {
		return progress{}
	}
	token := cl.params().Meta[metaProgressToken]
	if token == nil || cl.token != "" && token == cl.token {
		cl.token = rand.Text()
		token = cl.token
		params := *cl.params()
		params.Meta = maps.Clone(params.Meta)
		if params.Meta == nil {
			params.Meta = mcp.Meta{}
		}
		params.Meta[metaProgressToken] = token
		cl.replace(&params)
	}
	raw, err := json.Marshal(token)
	if err != nil {
		return progress{}
	}
	return progress{string(raw), token == cl.token}
}

// isOf reports whether a notification tells of this attempt's progress.
func (p progress) isOf(data []byte) bool {
	if p.token == "" {
		return false
	}
	var msg struct {
		Method string `json:"method"`
		Params struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"params"`
	}
	return json.Unmarshal(data, &msg) == nil && msg.Method == "notifications/progress" && string(msg.Params.Token) == p.token
}
