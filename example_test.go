package surecall_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// The code of README.md and of docs/ stands here, or in the example of another
// package, so that it compiles and runs.

func newClient() *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil)
}

// Example wraps a client that a host already has.
func Example() {
	server := middlewaretest.NewServer(nil)
	defer server.Close()
	server.Script("get_balance", middlewaretest.Status(503))
	ctx, client, endpoint := context.Background(), newClient(), server.URL()

	rules := &policy.Policy{Rules: []policy.Rule{
		{Tool: "get_*", Settings: policy.Settings{Safety: policy.ReadOnly}},
	}}
	stack := middleware.New(&middleware.Options{Policy: rules})
	client.AddSendingMiddleware(stack.Middleware()...)
	transport := &mcp.StreamableClientTransport{Endpoint: endpoint, HTTPClient: stack.HTTPClient(nil)}

	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "get_balance"})
	fmt.Println(text(res), err, server.Posts("get_balance"))
	// Output: get_balance done <nil> 2
}

func text(res *mcp.CallToolResult) string { return res.Content[0].(*mcp.TextContent).Text }

// Example_error tells the ends of a call apart.
func Example_error() {
	server := middlewaretest.NewServer(nil)
	defer server.Close()
	server.Script("pay", middlewaretest.Status(503).Executed())
	stack := middleware.New(nil)
	client := newClient()
	client.AddSendingMiddleware(stack.Middleware()...)
	ctx := context.Background()
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: server.URL(), HTTPClient: stack.HTTPClient(nil)}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	args := map[string]any{"order": "7"}

	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "pay", Arguments: args})
	var failed *observe.Error
	switch {
	case errors.As(err, &failed) && failed.RepeatSafe:
		fmt.Println("nothing is doubled by trying again, after", failed.RetryAfter)
	case err != nil:
		fmt.Println("look first whether it took effect")
	case res.IsError:
		fmt.Println("the tool says why it failed:", res.Content)
	}

	// Output: look first whether it took effect
}

// Example_record prints a record for each call.
func Example_record() {
	rules := &policy.Policy{}

	stack := middleware.New(&middleware.Options{
		Policy:   rules,
		OnRecord: func(_ context.Context, r *observe.Record) { _ = json.NewEncoder(os.Stdout).Encode(r) },
	})

	fmt.Println(stack)
	// Output: Record -> Surface -> Key -> Retry -> Admit -> Attempt -> SDK -> Transport
}

// Example_handlers keeps records in a file, logs what went wrong, and counts.
func Example_handlers() {
	file, err := os.CreateTemp("", "calls-*.jsonl")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.Remove(file.Name())
	failures := 0

	records := observe.NewJSONL(file, nil)
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	stack := middleware.New(&middleware.Options{
		OnRecord: observe.Tee(
			records.Handle,
			observe.Log(logger),
			func(_ context.Context, r *observe.Record) {
				if r.Outcome != observe.ToolSuccess {
					failures++
				}
			},
		),
	})
	// At the end of the program, first the records, then their file:
	defer func() {
		if err := errors.Join(records.Close(context.Background()), file.Close()); err != nil || records.Lost() > 0 {
			fmt.Println("records lost:", records.Lost(), err)
		}
	}()

	fmt.Println(stack, failures)
	// Output: Record -> Surface -> Key -> Retry -> Admit -> Attempt -> SDK -> Transport 0
}

// Example_disclose shows one argument of one tool in its records.
func Example_disclose() {
	opts := &middleware.Options{
		Disclose: []middleware.Disclosure{{
			Tool: "read_weather",
			Arguments: func(arguments json.RawMessage) string {
				var in struct{ City string }
				_ = json.Unmarshal(arguments, &in)
				return "city " + in.City
			},
		}},
	}

	fmt.Println(opts.Disclose[0].Arguments(json.RawMessage(`{"city":"Bern","user":"jo"}`)))
	// Output: city Bern
}

// Example_shadow watches live traffic and changes nothing about it.
func Example_shadow() {
	rules := &policy.Policy{}

	stack := middleware.New(&middleware.Options{
		Policy: rules,
		Shadow: true,
		OnRecord: func(_ context.Context, r *observe.Record) {
			for _, c := range r.Would {
				fmt.Println(r.Tool, "would", c.Action, "because", c.Reason)
			}
		},
	})

	fmt.Println(stack)
	// Output: Record -> Attempt -> SDK -> Transport
}

// TestRecordsEncode: the line of the README prints a record for every kind of
// ending, whichever middlewares are in use.
func TestRecordsEncode(t *testing.T) {
	for _, alone := range []bool{false, true} {
		server := middlewaretest.NewServer(nil)
		defer server.Close()
		lines := 0
		opts := &middleware.Options{OnRecord: func(_ context.Context, r *observe.Record) {
			if err := json.NewEncoder(io.Discard).Encode(r); err != nil {
				t.Error(err)
			}
			lines++
		}}
		stack, client := middleware.New(opts), newClient()
		client.AddSendingMiddleware(stack.Middleware()...)
		if alone {
			client = newClient()
			client.AddSendingMiddleware(middleware.Record(opts))
		}
		hc := stack.HTTPClient(nil)
		session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL(), HTTPClient: hc}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"status-503", "body-malformed", "envelope-wrong-id", "reset-executed", ""} {
			if f, ok := middlewaretest.FaultNamed(name); ok {
				server.Script("send_mail", f)
			}
			_, _ = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "send_mail", Arguments: map[string]any{"n": i}})
		}
		_ = session.Close()
		hc.CloseIdleConnections()
		if lines != 5 {
			t.Errorf("alone %t: %d records of 5 calls", alone, lines)
		}
	}
}

// Example_transport uses the transport without the client middlewares.
func Example_transport() {
	server := middlewaretest.NewServer(nil)
	defer server.Close()
	malformed, _ := middlewaretest.FaultNamed("body-malformed")
	server.Script("pay", malformed)
	ctx, client, endpoint := context.Background(), newClient(), server.URL()

	guard := middleware.NewTransport(nil, nil)
	transport := &mcp.StreamableClientTransport{Endpoint: endpoint, HTTPClient: &http.Client{Transport: guard}}

	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.CloseIdleConnections()
	defer session.Close()

	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "pay"})
	if failed, ok := middleware.ErrorFrom(err); ok {
		fmt.Println(failed.Outcome, failed.Delivery)
	}

	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "pay"})
	fmt.Println("the session serves the next call:", err == nil)
	// Output:
	// MALFORMED_JSON unknown
	// the session serves the next call: true
}

func TestStdio(t *testing.T) {
	t.Setenv(serveStdio, "1")
	var record *observe.Record
	stack := middleware.New(&middleware.Options{OnRecord: func(_ context.Context, r *observe.Record) { record = r }})
	ctx, client, program := t.Context(), newClient(), os.Args[0]

	client.AddSendingMiddleware(stack.Middleware()...)
	session, err := client.Connect(ctx, stack.CommandTransport(exec.Command(program)), nil)

	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for _, tt := range []struct {
		tool     string
		outcome  observe.Outcome
		delivery observe.Delivery
	}{
		{"fail", observe.ToolError, observe.Answered},
		{"nothing", observe.JSONRPCError, observe.Answered},
		{"die", observe.NetworkError, observe.Unknown},
		{"fail", observe.SessionLost, observe.NotSent}, // the process is gone
	} {
		res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tt.tool})
		if (err == nil) != (res != nil) || record.Outcome != tt.outcome || record.Delivery != tt.delivery {
			t.Errorf("%s: %s, %s, %v; want %s, %s", tt.tool, record.Outcome, record.Delivery, err, tt.outcome, tt.delivery)
		}
	}
}

// A payment whose outcome is unknown is looked for by a tool that only reads.
func Example_reconcile() {
	stack := middleware.New(&middleware.Options{
		Reconcile: []middleware.Reconciliation{{
			Tool: "pay",
			Look: func(ctx context.Context, u *middleware.Unresolved) (middleware.Finding, *mcp.CallToolResult, error) {
				res, err := u.Session.CallTool(ctx, &mcp.CallToolParams{
					Name: "find_payment", Arguments: map[string]any{"order": u.Arguments.(map[string]any)["order"]},
				})
				switch {
				case err != nil:
					return middleware.CannotTell, nil, err
				case !res.IsError:
					return middleware.Happened, res, nil
				case strings.Contains(res.Content[0].(*mcp.TextContent).Text, "no such payment"):
					return middleware.DidNotHappen, nil, nil
				}
				return middleware.CannotTell, nil, nil // the bank itself may be in trouble
			},
		}},
	})
	fmt.Println(stack)
	// Output: Record -> Surface -> Key -> Retry -> Admit -> Attempt -> SDK -> Transport
}

// Example_policyFile reads the policy of README.md.
func Example_policyFile() {
	server := middlewaretest.NewServer(nil)
	defer server.Close()
	server.Script("get_balance", middlewaretest.Status(503))
	server.Script("send_mail", middlewaretest.Status(503).Executed())

	stack, err := stackFrom("policy/samples/ten_lines.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	client := newClient()
	client.AddSendingMiddleware(stack.Middleware()...)
	ctx := context.Background()
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: server.URL(), HTTPClient: stack.HTTPClient(nil)}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	for _, name := range []string{"get_balance", "send_mail"} {
		res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(name, "for the model:", res.IsError, "sent:", server.Posts(name), "effects:", server.Effects(name))
	}
	// Output:
	// get_balance for the model: false sent: 2 effects: 1
	// send_mail for the model: true sent: 1 effects: 1
}

// A policy file that is watched: the error is that of the first look.
func Example_watch() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, path := range []string{"policy/samples/ten_lines.yaml", "policy/samples/none.yaml"} {
		_, err := watchingStack(ctx, path)
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// stat policy/samples/none.yaml: no such file or directory
}

func watchingStack(ctx context.Context, path string) (*middleware.Stack, error) {
	stack := middleware.New(nil)
	err := stack.WatchPolicy(ctx, path, &middleware.WatchOptions{Logger: slog.Default()})
	if err != nil {
		return nil, err // of the file as it is now
	}
	return stack, nil
}

func stackFrom(path string) (*middleware.Stack, error) {
	rules, err := policy.Load(path)
	if err != nil {
		return nil, err // everything that is wrong, with file, line and column
	}
	stack := middleware.New(&middleware.Options{Policy: rules})
	return stack, nil
}
