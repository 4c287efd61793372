// Eino runs an agent of CloudWeGo's Eino against a server that misbehaves, each story
// twice: with the bare MCP client, and with a wrapped one.
//
//	cd example/eino && go run .
//
// It needs no network and no key: the model is a script, and the server runs in this
// process. It ends with status 1 if the wrapped client let a payment happen twice.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/cloudwego/eino-ext/components/tool/mcp/officialmcp"
	"github.com/cloudwego/eino-ext/components/tool/mcp/officialmcp/session"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/policy"
)

func main() {
	for _, s := range stories() {
		fmt.Printf("\n%s\n", s.title)
		for _, wrapped := range []bool{false, true} {
			end, err := s.tell(context.Background(), wrapped)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			fmt.Println(end)
			if wrapped && s.tool == "pay" && end.effects > 1 {
				os.Exit(1)
			}
		}
	}
}

// An ending is what came of a story.
type ending struct {
	client  string
	effects int
	saw     []string // by the model, or where a run was aborted, by the host
}

func (e ending) String() string {
	s := fmt.Sprintf("  %-8s executions: %d", e.client, e.effects)
	for _, text := range e.saw {
		s += "\n           " + text
	}
	return s
}

// tell runs an agent against a server on which the story's fault lies.
func (s story) tell(ctx context.Context, wrapped bool) (ending, error) {
	server := middlewaretest.NewServer(&middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true})
	defer server.Close()
	s.wrong(server)
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	transport := &mcp.StreamableClientTransport{Endpoint: server.URL()}
	connect := func() (connection, error) { return client.Connect(ctx, transport, nil) }
	end := ending{client: "bare"}
	switch {
	case wrapped:
		end.client = "wrapped"
		wrap(client, transport)
	case s.own:
		connect = func() (connection, error) { return ownSession(ctx, server.URL()) }
	}
	ctx = withConversation(idempotency.WithPrincipal(ctx, "user-7"), "conversation-1")
	for _, turns := range [][]turn{s.turns, s.again} {
		if len(turns) == 0 {
			continue
		}
		saw, err := run(ctx, connect, turns)
		if err != nil {
			return ending{}, err
		}
		end.saw = append(end.saw, saw...)
	}
	end.effects = server.Effects(s.tool)
	return end, nil
}

// A connection is what Eino calls tools through: a session of the SDK, or one of Eino's
// own.
type connection interface {
	officialmcp.ClientSession
	Close() error
}

// ownSession is the one of Eino's that connects again. It makes a client of its own, to
// which no middleware can be added (officialmcp v0.1.1): wrap a session of the SDK.
func ownSession(ctx context.Context, url string) (connection, error) {
	return session.Connect(ctx, session.ServerConfig{
		Transport: session.TransportConfig{Type: session.TransportStreamableHTTP, URL: url},
	})
}

// wrap is all that surecall asks for: middlewares for the client, an HTTP client for
// the transport, and the glue that names each decision.
func wrap(client *mcp.Client, transport *mcp.StreamableClientTransport) {
	stack := middleware.New(&middleware.Options{Policy: &policy.Policy{Rules: []policy.Rule{
		{Tool: "read_*", Settings: policy.Settings{Safety: policy.ReadOnly}},
		{Settings: policy.Settings{Surface: policy.SurfaceModel}},
	}}})
	transport.HTTPClient = stack.HTTPClient(nil)
	client.AddSendingMiddleware(stack.Middleware()...)
	client.AddSendingMiddleware(intents)
}

// run connects, asks the agent once, and says what was seen.
func run(ctx context.Context, connect func() (connection, error), turns []turn) ([]string, error) {
	tools, err := connect()
	if err != nil {
		return nil, err
	}
	defer tools.Close()
	model := &script{turns: turns}
	agent, err := newAgent(ctx, tools, model)
	if err != nil {
		return nil, err
	}
	if _, err := agent.Generate(ctx, []*schema.Message{schema.UserMessage("Go ahead.")}); err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n") // the rest is Eino's node path
		return append(model.saw, "the run is aborted: "+reason), nil
	}
	return model.saw, nil
}

// newAgent builds an agent whose tools are the server's. Unless ErrorAsError is false,
// a result with isError aborts the run; the bare client has the better of it, too.
func newAgent(ctx context.Context, tools officialmcp.ClientSession, model *script) (*react.Agent, error) {
	all, err := officialmcp.GetTools(ctx, &officialmcp.Config{
		Cli:           tools,
		ListToolsMode: officialmcp.ListToolsAllPages,
		ResultPolicy:  &officialmcp.ResultPolicy{ErrorAsError: new(false)},
	})
	if err != nil {
		return nil, err
	}
	return react.NewAgent(ctx, &react.AgentConfig{
		ToolCallingModel: model,
		ToolsConfig:      compose.ToolsNodeConfig{Tools: all},
	})
}
