package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/surecall/surecall/idempotency"
)

// A host whose store does not open goes on reading, and pays nothing.
func ExampleUnavailable() {
	var store idempotency.Store
	err := errors.New("opening calls.ledger: damaged") // as a store's Open may say
	if err != nil {
		store = idempotency.Unavailable(err)
	}
	ledger := idempotency.NewLedger(store, nil)

	_, err = ledger.Begin(context.Background(), idempotency.Call{Server: "bank", Tool: "pay", Intent: "s-1/call_9"})
	fmt.Println(err)
	// Output:
	// tool "pay" not called: the ledger of calls cannot be used, so nothing was sent: a repeat could not be recognised: opening calls.ledger: damaged
}

func TestUnavailable(t *testing.T) {
	why := errors.New("locked")
	for _, err := range []error{why, nil} {
		_, got := idempotency.NewLedger(idempotency.Unavailable(err), nil).Begin(t.Context(), idempotency.Call{Tool: "pay", Keyed: true})
		var refused *idempotency.Error
		if !errors.As(got, &refused) || refused.Kind != idempotency.KindStore || err != nil && !errors.Is(got, err) {
			t.Errorf("with %v: %v", err, got)
		}
	}
}
