// Anthropic runs the tool runner of Anthropic's SDK against a server that misbehaves,
// each story twice: with the bare MCP client, and with a wrapped one.
//
//	cd example/anthropic && go run .
//
// It needs no network and no key: the model is a script behind an endpoint of this
// process, and so is the server. It ends with status 1 if the wrapped client let a
// payment happen twice.
package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicmcp "github.com/anthropics/anthropic-sdk-go/v2/mcp"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
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
	saw     []string
}

func (e ending) String() string {
	s := fmt.Sprintf("  %-8s executions: %d", e.client, e.effects)
	for _, text := range e.saw {
		s += fmt.Sprintf("\n           the model reads: %s", text)
	}
	return s
}

// tell runs a model against a server on which the story's fault lies.
func (s story) tell(ctx context.Context, wrapped bool) (ending, error) {
	server := middlewaretest.NewServer(&middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true})
	defer server.Close()
	s.wrong(server)
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	transport := &mcp.StreamableClientTransport{Endpoint: server.URL()}
	end := ending{client: "bare"}
	if wrapped {
		end.client = "wrapped"
		wrap(client, transport)
	}
	ctx = idempotency.WithPrincipal(ctx, "user-7")
	for i, turns := range [][]turn{s.turns, s.again} {
		if len(turns) == 0 {
			continue
		}
		model := &script{turns: turns}
		if err := run(withRun(ctx, fmt.Sprintf("run-%d", i+1)), client, transport, model); err != nil {
			return ending{}, err
		}
		end.saw = append(end.saw, model.saw...)
	}
	end.effects = server.Effects(s.tool)
	return end, nil
}

// wrap is all that surecall asks for: middlewares for the client, an HTTP client for
// the transport, and the glue that names each decision. Two equal mails in one run are
// two mails.
func wrap(client *mcp.Client, transport *mcp.StreamableClientTransport) {
	stack := middleware.New(&middleware.Options{Policy: &policy.Policy{Rules: []policy.Rule{
		{Tool: "read_*", Settings: policy.Settings{Safety: policy.ReadOnly}},
		{Settings: policy.Settings{Surface: policy.SurfaceModel}},
	}}})
	transport.HTTPClient = stack.HTTPClient(nil)
	client.AddSendingMiddleware(stack.Middleware()...)
	client.AddSendingMiddleware(intents(transport.Endpoint, "send_mail"))
}

// run connects and lets a model work with the server's tools until it is done. A host
// resumes a runner that failed, as it may ([anthropic.BetaToolRunner] keeps its state).
func run(ctx context.Context, client *mcp.Client, transport mcp.Transport, model *script) error {
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	runner, stop, err := newRunner(ctx, session, model)
	if err != nil {
		return err
	}
	defer stop()
	if _, err = runner.RunToCompletion(ctx); err != nil {
		_, err = runner.RunToCompletion(ctx)
	}
	return err
}

// newRunner builds a runner whose tools are the server's, and the endpoint of its model.
func newRunner(ctx context.Context, session *mcp.ClientSession, model *script) (*anthropic.BetaToolRunner, func(), error) {
	list, err := session.ListTools(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	tools, err := anthropicmcp.NewBetaTools(list.Tools, session)
	if err != nil {
		return nil, nil, err
	}
	endpoint := httptest.NewServer(model)
	api := anthropic.NewClient(option.WithBaseURL(endpoint.URL), option.WithAPIKey("none"), option.WithMaxRetries(0))
	runner := api.Beta.Messages.NewToolRunner(tools, anthropic.BetaToolRunnerParams{
		BetaMessageNewParams: anthropic.BetaMessageNewParams{
			Model:     "script",
			MaxTokens: 1000,
			Messages:  []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("Go ahead."))},
		},
		DisableThread: true, // the endpoint keeps no threads
	})
	return runner, endpoint.Close, nil
}
