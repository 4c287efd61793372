package main

import (
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/policy"
)

// explainAll prints what the policy comes to for each -explain: for a tool of the
// server, with what that says of it; without a server, by the name alone.
func (d *doctor) explainAll(tools []*mcp.Tool) {
	for i, name := range d.explain {
		if i > 0 {
			fmt.Fprintln(d.info)
		}
		var said *policy.Annotations
		if d.hasServer() {
			said = d.saidOf(name, tools)
		}
		fmt.Fprint(d.info, d.policy.Explain(d.name(), name, said))
	}
}

// saidOf is what the server says of a tool; nil, with a word to the user, where it
// lists none of that name.
func (d *doctor) saidOf(name string, tools []*mcp.Tool) *policy.Annotations {
	i := slices.IndexFunc(tools, func(t *mcp.Tool) bool { return t.Name == name })
	if i < 0 {
		fmt.Fprintf(d.stderr, "doctor: the server lists no tool %s\n", quoted(name, maxName))
		return nil
	}
	return d.annotations(tools[i])
}
