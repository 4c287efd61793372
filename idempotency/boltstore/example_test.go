package boltstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/idempotency/boltstore"
)

// The ledger outlives the process: what it left behind is known afterwards.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "ledger")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "calls.ledger")

	store, err := boltstore.Open(path, &boltstore.Options{Timeout: 5 * time.Second})
	if err != nil {
		fmt.Println(err) // says which file, what is wrong with it, what to do
		return
	}
	defer store.Close()
	ledger := idempotency.NewLedger(store, nil)

	call := idempotency.Call{Server: "bank", Tool: "pay", Intent: "s-1/call_9"}
	_, err = ledger.Begin(context.Background(), call) // and the process dies
	fmt.Println(err)

	restarted := idempotency.NewLedger(store, nil)
	_, err = restarted.Begin(context.Background(), call)
	fmt.Println(err != nil)
	// Output:
	// <nil>
	// true
}
