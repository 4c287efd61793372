// Adk runs an agent of Google's Agent Development Kit against a server that
// misbehaves, each story twice: with the bare MCP client, and with a wrapped one.
//
//	cd example/adk && go run .
//
// It needs no network and no key: the model is a script, and the server runs in this
// process. It ends with status 1 if the wrapped client let a payment happen twice.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/mcptoolset"
	"google.golang.org/genai"

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
	saw     []string
}

func (e ending) String() string {
	s := fmt.Sprintf("  %-8s executions: %d", e.client, e.effects)
	for _, text := range e.saw {
		s += fmt.Sprintf("\n           the model reads: %s", text)
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
	end := ending{client: "bare"}
	if wrapped {
		end.client = "wrapped"
		wrap(client, transport, !s.unhealed)
	}
	model := &script{turns: s.turns}
	run, err := newRunner(client, transport, model)
	if err != nil {
		return ending{}, err
	}
	for _, turns := range [][]turn{s.turns, s.again} {
		if len(turns) == 0 {
			continue
		}
		model.turns, model.next = turns, 0
		for _, err := range run.Run(ctx, "user-7", "session-1", genai.NewContentFromText("Go ahead.", genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				return ending{}, err
			}
		}
	}
	end.effects, end.saw = server.Effects(s.tool), model.saw
	return end, nil
}

// wrap is all that surecall asks for: middlewares for the client, an HTTP client for
// the transport, and the glue that names each decision. A lost session is renewed below
// the SDK, unless heal is false. For that case, and where renewing fails, ADK gets the
// failures of tools that only read, so that it can connect again and repeat the call; the
// model gets the others.
func wrap(client *mcp.Client, transport *mcp.StreamableClientTransport, heal bool) {
	stack := middleware.New(&middleware.Options{Policy: &policy.Policy{Rules: []policy.Rule{
		{Tool: "read_*", Settings: policy.Settings{Safety: policy.ReadOnly, Surface: policy.SurfaceCaller}},
		{Settings: policy.Settings{Surface: policy.SurfaceModel, Session: policy.Session{Heal: &heal}}},
	}}})
	transport.HTTPClient = stack.HTTPClient(nil)
	client.AddSendingMiddleware(stack.Middleware()...)
	client.AddSendingMiddleware(intents)
}

// newRunner builds an agent whose tools are the server's.
func newRunner(client *mcp.Client, transport mcp.Transport, model *script) (*runner.Runner, error) {
	tools, err := mcptoolset.New(mcptoolset.Config{Client: client, Transport: transport})
	if err != nil {
		return nil, err
	}
	a, err := llmagent.New(llmagent.Config{Name: "clerk", Model: model, Toolsets: []tool.Toolset{tools}})
	if err != nil {
		return nil, err
	}
	return runner.NewInMemory("example", a)
}
