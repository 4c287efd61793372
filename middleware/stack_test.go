package middleware_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// echoServer is the SDK's own server with one tool.
func echoServer(t *testing.T, opts *mcp.StreamableHTTPOptions) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1"}, nil)
	type in struct {
		Text string `json:"text"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in in) (*mcp.CallToolResult, any, error) {
		if in.Text == "fail" {
			return nil, nil, fmt.Errorf("as asked")
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
	})
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, opts))
	t.Cleanup(h.Close)
	return h.URL
}

func TestStackAgainstSDKServer(t *testing.T) {
	for name, opts := range map[string]*mcp.StreamableHTTPOptions{
		"sessions":       nil,
		"stateless":      {Stateless: true},
		"stateless json": {Stateless: true, JSONResponse: true},
	} {
		t.Run(name, func(t *testing.T) {
			var records []*observe.Record
			stack := middleware.New(&middleware.Options{
				Policy:   &policy.Policy{Rules: []policy.Rule{{Tool: "echo", Settings: policy.Settings{Safety: policy.ReadOnly}}}},
				OnRecord: checked(t, func(_ context.Context, r *observe.Record) { records = append(records, r) }),
			})
			client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
			client.AddSendingMiddleware(stack.Middleware()...)
			cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: echoServer(t, opts), HTTPClient: stack.HTTPClient(nil)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer cs.Close()
			for _, text := range []string{"hello", "fail"} {
				res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": text}})
				if err != nil {
					t.Fatal(err)
				}
				if got := res.Content[0].(*mcp.TextContent).Text; (text == "fail") != res.IsError {
					t.Errorf("echo %q: isError %v, %q", text, res.IsError, got)
				}
			}
			if len(records) != 2 || records[0].Outcome != observe.ToolSuccess || records[1].Outcome != observe.ToolError {
				for _, r := range records {
					t.Errorf("record %+v", *r)
				}
			}
			for _, r := range records {
				if r.PostCount != 1 || r.Delivery != observe.Answered || !slices.Equal(r.HTTPStatuses, []int{200}) {
					t.Errorf("record %+v", *r)
				}
			}
		})
	}
}

func TestStackOrder(t *testing.T) {
	want := "Record -> Surface -> Key -> Retry -> Admit -> Attempt -> SDK -> Transport"
	if got := middleware.New(nil).String(); got != want {
		t.Errorf("order %s, want %s", got, want)
	}
}
