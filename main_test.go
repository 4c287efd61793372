package surecall_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// serveStdio, in the environment of this test program, makes it an MCP server on
// its standard input and output.
const serveStdio = "SURECALL_TEST_SERVE_STDIO"

func TestMain(m *testing.M) {
	if os.Getenv(serveStdio) != "" {
		serve()
		return
	}
	goleak.VerifyTestMain(m)
}

func serve() {
	server := mcp.NewServer(&mcp.Implementation{Name: "stdio", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "fail"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New("as asked")
	})
	mcp.AddTool(server, &mcp.Tool{Name: "die"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		os.Exit(1)
		return nil, nil, nil
	})
	_ = server.Run(context.Background(), &mcp.StdioTransport{})
}
