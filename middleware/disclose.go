package middleware

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/observe"
)

// A Disclosure lets the records of some tools show arguments, results or both, as
// far as the host's own redactors let them pass.
type Disclosure struct {
	// Server and Tool are globs, as in [policy.Rule]; empty matches all.
	Server, Tool string
	// Arguments makes a text of a call's arguments, given as JSON. Nil: they are not
	// shown.
	Arguments func(arguments json.RawMessage) string
	// Result makes a text of a result that came from the server or the ledger. It must
	// not change it. Nil: results are not shown.
	Result func(*mcp.CallToolResult) string
}

// maxDisclosed bounds what a record shows of arguments or a result, in bytes.
const maxDisclosed = 4 << 10

// disclose adds what the host has opted into. Credentials are looked for once more:
// a redactor forgets. One that panics shows nothing.
func (c *core) disclose(r *observe.Record, cl *call, res mcp.Result) {
	for _, d := range c.opts.Disclose {
		if !matches(d.Server, cl.server.name) || !matches(d.Tool, cl.tool.Name) {
			continue
		}
		if params := cl.params(); d.Arguments != nil && params != nil {
			r.Arguments = shown(func() string {
				raw, err := json.Marshal(params.Arguments)
				if err != nil {
					return ""
				}
				return d.Arguments(raw)
			})
		}
		if tool, ok := res.(*mcp.CallToolResult); ok && tool != nil && d.Result != nil {
			if _, ours := FailureOf(tool); !ours {
				r.Result = shown(func() string { return d.Result(tool) })
			}
		}
		return
	}
}

func shown(text func() string) (s *string) {
	defer func() {
		if recover() != nil {
			s = nil
		}
	}()
	return new(observe.Redact(text(), maxDisclosed))
}
