package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// scenarios are what the referee asks of a client, by its names for them (version
// 0.1.16).
var scenarios = map[string]func(context.Context, *client, io.Writer) error{
	"initialize":                          list,
	"tools_call":                          calling("add_numbers", map[string]any{"a": 5, "b": 3}),
	"sse-retry":                           calling("test_reconnection", map[string]any{}),
	"elicitation-sep1034-client-defaults": calling("test_client_elicitation_defaults", map[string]any{}),
}

// list asks for the tools.
func list(ctx context.Context, c *client, out io.Writer) error {
	tools, err := c.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d tools\n", len(tools.Tools))
	return nil
}

// calling looks for a tool and calls it.
func calling(name string, args map[string]any) func(context.Context, *client, io.Writer) error {
	return func(ctx context.Context, c *client, out io.Writer) error {
		tools, err := c.ListTools(ctx, nil)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(tools.Tools, func(t *mcp.Tool) bool { return t.Name == name }) {
			return fmt.Errorf("the server has no tool %s", name)
		}
		res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			return err
		}
		text, err := json.Marshal(res)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %s\n", name, text)
		return nil
	}
}
