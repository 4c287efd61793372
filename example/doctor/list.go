package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/policy"
)

// maxTools bounds a list whose pages do not end.
const maxTools = 10_000

// listTools prints the tools with their safety, the rule that gave it, and what the
// server says of them, which counts for nothing here.
func (d *doctor) listTools(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	var tools []*mcp.Tool
	for tool, err := range d.session.Tools(within, nil) {
		if err != nil {
			return fmt.Errorf("tools/list failed: %s", d.why(within, err))
		}
		if len(tools) == maxTools {
			complain(d.stderr, fmt.Errorf("the list of tools is cut after %d", maxTools))
			break
		}
		tools = append(tools, tool)
	}
	table(d.info, tools, d.policy)
	return nil
}

func table(w io.Writer, tools []*mcp.Tool, p *policy.Policy) {
	if len(tools) == 0 {
		fmt.Fprint(w, "The server has no tools.\n")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "TOOL\tSAFETY\tRULE\tTHE SERVER SAYS\n")
	for _, tool := range tools {
		in := p.Resolve("", tool.Name, nil)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", plain(tool.Name, maxName), in.Safety, in.Rule, hints(tool.Annotations))
	}
	_ = t.Flush()
	fmt.Fprintln(w)
}

// hints are the annotations that speak of repeating.
func hints(a *mcp.ToolAnnotations) string {
	if a == nil {
		return "-"
	}
	var said []string
	if a.ReadOnlyHint {
		said = append(said, "read-only")
	}
	if a.IdempotentHint {
		said = append(said, "idempotent")
	}
	if a.DestructiveHint != nil && *a.DestructiveHint {
		said = append(said, "destructive")
	}
	if len(said) == 0 {
		return "-"
	}
	return strings.Join(said, ", ")
}
