package main

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

//lint:file-ignore SA1019 servers of 2025-11-25 ask for roots and sampling, which 2026-07-28 deprecates.

// newHost is the client of a host that has everything a server may ask for, and always
// says the same. Its root is the directory.
func newHost(dir string) *mcp.Client {
	c := mcp.NewClient(&mcp.Implementation{Name: "realservers", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
			RootsV2:     &mcp.RootCapabilities{ListChanged: true},
		},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "decline"}, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Model: "none", Role: "assistant", Content: &mcp.TextContent{Text: "as the model says"}}, nil
		},
	})
	c.AddRoots(&mcp.Root{URI: "file://" + dir, Name: "dir"})
	return c
}
