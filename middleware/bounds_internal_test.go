package middleware

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// Names come from servers and models: there may be no end of them.
const endless = 3 * registrySize

func (r *registry[K, V]) size() int { return len(r.young) + len(r.old) }

func TestRegistryIsBounded(t *testing.T) {
	for name, keep := range map[string]func(r *registry[target, *int], t target){
		"get": func(r *registry[target, *int], t target) { r.get(t, func() *int { return new(int) }) },
		"put": func(r *registry[target, *int], t target) { r.put(t, new(int)) },
		"find": func(r *registry[target, *int], t target) {
			r.put(t, new(int))
			r.find(t)
			r.find(target{tool: "unknown"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var r registry[target, *int]
			inUse := target{"s", "in use"}
			first := r.get(inUse, func() *int { return new(int) })
			for i := range endless {
				keep(&r, target{"s", strconv.Itoa(i)})
				if n := r.size(); n > 2*registrySize {
					t.Fatalf("%d entries", n)
				}
				if i%(registrySize/2) != 0 {
					continue
				}
				if got, ok := r.find(inUse); !ok || got != first {
					t.Fatalf("what is in use was lost after %d names", i)
				}
			}
			if _, ok := r.find(target{"s", "0"}); ok {
				t.Error("what nobody asked for again is still there")
			}
		})
	}
}

// TestRegistryForgets: what was dropped is gone, in whichever half it was.
func TestRegistryForgets(t *testing.T) {
	var r registry[target, int]
	early, late := target{"s", "early"}, target{"s", "late"}
	r.put(early, 1)
	for i := range registrySize {
		r.put(target{"s", strconv.Itoa(i)}, i)
	}
	r.put(late, 2)
	for _, gone := range []target{early, late} {
		r.drop(gone)
		if _, ok := r.find(gone); ok {
			t.Errorf("%v is still there", gone)
		}
	}
}

// TestRegistryMakesOnce: state that moves from half to half is the same state.
func TestRegistryMakesOnce(t *testing.T) {
	var r registry[target, int]
	made := 0
	for i := range endless {
		r.get(target{"s", strconv.Itoa(i)}, func() int { return i })
		if i%(registrySize/2) == 0 {
			r.get(target{"s", "in use"}, func() int { made++; return made })
		}
	}
	if made != 1 {
		t.Errorf("made %d times", made)
	}
	r.put(target{"s", "in use"}, 7)
	if got := r.get(target{"s", "in use"}, nil); got != 7 {
		t.Errorf("%d after put", got)
	}
}

// TestPutAgainForgetsNothing: only new names push old ones out.
func TestPutAgainForgetsNothing(t *testing.T) {
	var r registry[target, int]
	for i := range 2 * registrySize {
		r.put(target{"s", strconv.Itoa(i)}, i)
	}
	r.put(target{"s", strconv.Itoa(registrySize)}, 7)
	if n := r.size(); n != 2*registrySize {
		t.Errorf("%d entries", n)
	}
}

// TestStateIsBounded: calls of endless tools, through every layer, leave no more
// than the registries hold, and the breaker of a tool in use stays open.
func TestStateIsBounded(t *testing.T) {
	stack := New(&Options{
		Policy: &policy.Policy{Rules: []policy.Rule{
			{Tool: "pay", Settings: policy.Settings{Breaker: policy.Breaker{Failures: 1}}},
			{Settings: policy.Settings{Gate: policy.GateTool, Limiter: policy.Limiter{Rate: 1e9, Burst: 1e9}, Retry: policy.Retry{Repeats: -1}}},
		}},
		OnRecord: func(context.Context, *observe.Record) {},
	})
	call := chain(stack, func(context.Context, string, mcp.Request) (mcp.Result, error) {
		return nil, errors.New("down")
	})
	for i := range endless {
		name := strconv.Itoa(i)
		if i%(registrySize/2) == 0 {
			name = "pay"
		}
		params := &mcp.CallToolParams{Name: name, Arguments: map[string]any{"n": i}}
		_, err := call(t.Context(), methodCallTool, &mcp.ClientRequest[mcp.Params]{Params: params})
		var e *observe.Error
		if !errors.As(err, &e) || name == "pay" && i > 0 && e.Outcome != observe.BreakerOpen {
			t.Fatalf("call %d of %s: %v", i, name, err)
		}
	}
	c := stack.core
	for name, n := range map[string]int{
		"gates": c.admission.gates.size(), "breakers": c.admission.tools.size(), "limiters": c.admission.limiters.size(),
		"budgets": c.budgets.size(), "failed calls": c.failed.size(),
	} {
		if n <= registrySize || n > 2*registrySize {
			t.Errorf("%s: %d entries", name, n)
		}
	}
}

// TestHintsAreBounded: a server may list any number of tools.
func TestHintsAreBounded(t *testing.T) {
	tools := make([]*mcp.Tool, endless)
	for i := range tools {
		tools[i] = &mcp.Tool{Name: strconv.Itoa(i)}
	}
	stack := New(nil)
	list := chain(stack, func(context.Context, string, mcp.Request) (mcp.Result, error) {
		return &mcp.ListToolsResult{Tools: tools}, nil
	})
	if _, err := list(t.Context(), "tools/list", &mcp.ClientRequest[mcp.Params]{Params: &mcp.ListToolsParams{}}); err != nil {
		t.Fatal(err)
	}
	if n := stack.core.hints.size(); n <= registrySize || n > 2*registrySize {
		t.Errorf("%d entries", n)
	}
}

// chain puts the stack's middlewares around what would be the SDK.
func chain(stack *Stack, sdk mcp.MethodHandler) mcp.MethodHandler {
	for _, m := range slices.Backward(stack.Middleware()) {
		sdk = m(sdk)
	}
	return sdk
}
