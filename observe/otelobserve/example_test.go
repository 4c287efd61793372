package otelobserve_test

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/propagation"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/observe/otelobserve"
	"github.com/surecall/surecall/policy"
)

// The observer is one option of the stack.
func ExampleNew() {
	rules := &policy.Policy{}
	observer, err := otelobserve.New(nil) // the global providers
	if err != nil {
		fmt.Println(err)
		return
	}
	stack := middleware.New(&middleware.Options{Policy: rules, Observer: observer})
	fmt.Println(stack)
	// Output: Record -> Surface -> Key -> Retry -> Admit -> Attempt -> SDK -> Transport
}

// A server that must not see what is in the host's baggage.
func ExampleOptions() {
	observer, err := otelobserve.New(&otelobserve.Options{Propagator: propagation.TraceContext{}})
	fmt.Println(observer != nil, err)
	// Output: true <nil>
}

// A server on the same SDK takes the trace up.
func ExampleReceived() {
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	server.AddReceivingMiddleware(otelobserve.Received(nil))
	// Output:
}
