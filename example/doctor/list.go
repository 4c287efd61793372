package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxTools bounds a list whose pages do not end.
const maxTools = 10_000

// tools asks the server for its tools, where something is to be told of them.
func (d *doctor) tools(ctx context.Context) ([]*mcp.Tool, error) {
	if !d.hasServer() || !d.list && len(d.explain) == 0 && d.linted == nil {
		return nil, nil
	}
	within, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	var tools []*mcp.Tool
	for tool, err := range d.session.Tools(within, nil) {
		if err != nil {
			return nil, fmt.Errorf("tools/list failed: %s", d.why(within, err))
		}
		if len(tools) == maxTools {
			complain(d.stderr, fmt.Errorf("the list of tools is cut after %d", maxTools))
			break
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

// showList prints the tools, where that is asked for, with their safety, the rule that
// gave it, and what the server says of them, which counts where the policy trusts it.
func (d *doctor) showList(tools []*mcp.Tool) {
	switch {
	case !d.list:
		return
	case len(tools) == 0:
		fmt.Fprint(d.info, "The server has no tools.\n")
		return
	}
	t := tabwriter.NewWriter(d.info, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "TOOL\tSAFETY\tRULE\tTHE SERVER SAYS\n")
	for _, tool := range tools {
		in := d.policy.Resolve(d.name(), tool.Name, d.annotations(tool))
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", plain(tool.Name, maxName), in.Safety, in.Rule, hints(tool.Annotations))
	}
	_ = t.Flush()
	fmt.Fprintln(d.info)
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
