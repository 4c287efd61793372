package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
)

// The code of docs/idempotency.md stands here, so that it compiles and runs.

// A host names the decision to act and on whose behalf it is made.
func ExampleWithIntent() {
	ctx, user, session, toolCall := context.Background(), "user-7", "s-1", "call_9"

	ctx = idempotency.WithPrincipal(ctx, user)
	ctx = idempotency.WithIntent(ctx, session+"/"+toolCall)

	fmt.Println(idempotency.PrincipalFrom(ctx), idempotency.IntentFrom(ctx))
	// Output: user-7 s-1/call_9
}

// Whoever makes calls without the middlewares asks the ledger by hand.
func ExampleLedger() {
	ctx := context.Background()
	ledger := idempotency.NewLedger(nil, nil)

	for range 2 {
		answer, err := payOnce(ctx, ledger)
		fmt.Println(answer, err)
	}
	// Output:
	// paid <nil>
	// paid <nil>
}

func payOnce(ctx context.Context, ledger *idempotency.Ledger) (string, error) {
	arguments := map[string]any{"to": "ann", "amount": 10}
	fingerprint, err := idempotency.FingerprintOf("bank", "pay", arguments)
	if err != nil {
		return "", err
	}
	ticket, err := ledger.Begin(ctx, idempotency.Call{
		Principal: "user-7", Server: "bank", Tool: "pay", Intent: "s-1/call_9",
		Fingerprint: fingerprint, GuardWindow: 10 * time.Minute,
	})
	if err != nil {
		return "", err // nothing may be sent
	}
	if earlier := ticket.Answer(); earlier != nil {
		return string(earlier.Body), nil
	}
	defer ticket.Settle(ctx, idempotency.Settlement{State: idempotency.Unknown})
	answer, err := send(ctx, arguments, ticket.Key())
	if err != nil {
		return "", err // settled as unknown
	}
	return answer, ticket.Settle(ctx, idempotency.Settlement{State: idempotency.Completed, Answer: []byte(answer)})
}

func send(context.Context, map[string]any, string) (string, error) { return "paid", nil }

// A refusal says why, in words for people and models, and since when.
func ExampleError() {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	ctx, ledger := context.Background(), idempotency.NewLedger(nil, &idempotency.LedgerOptions{Now: func() time.Time { return now }})
	call := idempotency.Call{Server: "bank", Tool: "pay", GuardWindow: 10 * time.Minute}
	first, err := ledger.Begin(ctx, call)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = first.Settle(ctx, idempotency.Settlement{State: idempotency.Unknown})
	now = now.Add(time.Minute)

	_, err = ledger.Begin(ctx, call)
	var refused *idempotency.Error
	if errors.As(err, &refused) && refused.Kind == idempotency.KindEqual {
		fmt.Println(refused.Since.Format(time.TimeOnly), refused.Until.Format(time.TimeOnly))
	}
	// Output: 12:00:00 12:10:00
}

// Once somebody has looked, the call can be made, or has its answer.
func ExampleLedger_InDoubt() {
	ctx, ledger := context.Background(), idempotency.NewLedger(nil, nil)
	call := idempotency.Call{Server: "bank", Tool: "pay", Intent: "s-1/call_9"}
	ticket, err := ledger.Begin(ctx, call)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = ticket.Settle(ctx, idempotency.Settlement{State: idempotency.Unknown})

	// What is in doubt? Then look: the bank's list of payments does not have it.
	doubts, err := ledger.InDoubt(ctx, call)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range doubts {
		// False if the call was made again meanwhile: look anew.
		resolved, err := d.Resolve(ctx, idempotency.Settlement{State: idempotency.Failed})
		fmt.Println(resolved, err)
	}
	_, err = ledger.Begin(ctx, call)
	fmt.Println(err)
	// Output:
	// true <nil>
	// <nil>
}

// A server executes once for each key, whatever a client or something between
// repeats.
func ExampleDeduplicate() {
	server := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)
	server.AddReceivingMiddleware(idempotency.Deduplicate(idempotency.NewMemory(nil), &idempotency.DeduplicateOptions{
		FinishCanceled: true,
		Ledger:         idempotency.LedgerOptions{Retention: 48 * time.Hour},
	}))
	payments := 0
	mcp.AddTool(server, &mcp.Tool{Name: "pay"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		payments++
		return &mcp.CallToolResult{}, nil, nil
	})

	ctx := context.Background()
	clientSide, serverSide := mcp.NewInMemoryTransports()
	serverSession, err := server.Connect(ctx, serverSide, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).Connect(ctx, clientSide, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		if _, err := session.CallTool(ctx, &mcp.CallToolParams{
			Name: "pay", Meta: mcp.Meta{idempotency.MetaKey: "payment-1"},
		}); err != nil {
			fmt.Println(err)
		}
	}
	metaKey, announced := idempotency.Announced(session.InitializeResult().Capabilities)
	fmt.Println(payments, announced, metaKey)
	_ = session.Close()
	_ = serverSession.Wait()
	// Output: 1 true io.github.surecall/idempotency-key
}
