package middleware

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/policy"
)

// lookup is the Reconciler that a policy describes: it asks a tool of the same server
// that only reads, by the call's own policy.
func (cl *call) lookup(rule *policy.Reconcile) Reconciler {
	return func(ctx context.Context, u *Unresolved) (Finding, *mcp.CallToolResult, error) {
		if tool := cl.rules.Resolve(u.Server, rule.Tool, nil); tool.Safety != policy.ReadOnly {
			return CannotTell, nil, fmt.Errorf("the tool %q, which the policy names in reconcile, is %s by the same policy, not read_only", rule.Tool, tool.Safety)
		}
		arguments, err := lookupArguments(rule, u)
		if err != nil {
			return CannotTell, nil, err
		}
		res, err := u.Session.CallTool(withRules(ctx, cl.rules), &mcp.CallToolParams{Name: rule.Tool, Arguments: arguments})
		if err != nil {
			return CannotTell, nil, err
		}
		return meaning(rule, res), res, nil
	}
}

// meaning reads the answer of the tool that was asked.
func meaning(rule *policy.Reconcile, res *mcp.CallToolResult) Finding {
	text := strings.TrimSuffix(resultText(res), "\n")
	happened := rule.Happened.Matches(res.StructuredContent, text, res.IsError)
	didNot := rule.DidNotHappen.Matches(res.StructuredContent, text, res.IsError)
	switch {
	case happened == didNot:
		return CannotTell
	case happened:
		return Happened
	}
	return DidNotHappen
}

// lookupArguments takes the arguments of the tool to ask from those of the call.
func lookupArguments(rule *policy.Reconcile, u *Unresolved) (map[string]any, error) {
	given, err := json.Marshal(u.Arguments)
	if err != nil {
		return nil, err
	}
	arguments := make(map[string]any, len(rule.Arguments))
	for name, from := range rule.Arguments {
		switch {
		case from == policy.ReconcileKey:
			arguments[name] = u.Key
		case strings.HasPrefix(from, "/"):
			value, ok := policy.At(given, from)
			if !ok {
				return nil, fmt.Errorf("the call has no argument %q, which the policy's reconcile takes %q from", from, name)
			}
			arguments[name] = value
		default:
			arguments[name] = from
		}
	}
	return arguments, nil
}
