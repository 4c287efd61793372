package middleware

import (
	"context"
	"net/http"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// SetPolicy puts another policy in the place of the one in use, all at once; nil is
// that of the defaults. What [policy.Policy.Validate] reports changes nothing, and is
// the error. The policy must not be changed afterwards.
//
// Calls under way keep the policy that they began with, for what they look up later as
// well. Breakers, limiters and budgets whose settings stay the same go on as they are; one
// whose settings change begins anew, and takes up where it was when they come back soon.
// A session takes the settings that hold when it is renewed.
func (s *Stack) SetPolicy(p *policy.Policy) error {
	if err := p.Validate(); err != nil {
		return err
	}
	s.core.rules.Store(policy.NewResolver(p))
	return nil
}

type rulesKey struct{}

// withRules lets requests that are a part of a call go by the call's policy.
func withRules(ctx context.Context, rules *policy.Resolver) context.Context {
	return context.WithValue(ctx, rulesKey{}, rules)
}

// rulesFor is the policy for a request that begins now.
func (c *core) rulesFor(ctx context.Context) *policy.Resolver {
	if rules, ok := ctx.Value(rulesKey{}).(*policy.Resolver); ok {
		return rules
	}
	return c.rules.Load()
}

// unknownTool is the policy for a POST that no middleware has announced.
func (c *core) unknownTool(req *http.Request) *policy.Tool {
	// The header exists from 2026-07-28 on; without it the rules for any tool hold.
	return c.rules.Load().Resolve(observe.RedactURL(askedURL(req)), req.Header.Get("Mcp-Name"), nil)
}
