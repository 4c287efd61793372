package main

import (
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/observe"
)

// A row is a call that was made.
type row struct {
	call
	record  *observe.Record
	effects int // of this call, from the server's ledger
	arrived int // POSTs that reached the server
	result  *mcp.CallToolResult
	err     error
}

// ending is what the call came to.
func (r *row) ending() ending {
	return ending{
		outcome:  r.record.Outcome,
		delivery: r.record.Delivery,
		attempts: len(r.record.Attempts),
		posts:    r.record.PostCount,
		effects:  r.effects,
	}
}

// seen is what the program got back, and for whom it is: the model reads results,
// whether the tool's or ours; an error goes to the calling program.
func (r *row) seen() (who, text string) {
	if r.err != nil {
		return "caller", r.err.Error()
	}
	var parts []string
	for _, c := range r.result.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			parts = append(parts, t.Text)
		}
	}
	return "model", strings.Join(parts, " ")
}
