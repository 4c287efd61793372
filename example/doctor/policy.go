package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/policy"
)

// takePolicy makes the policy: a rule for each -safety in their order, which records
// name as it was written, one for -surface, and then the rules of the file, so that the
// command line counts before the file.
func (o *options) takePolicy(g *given) error {
	o.policy = &policy.Policy{}
	for _, s := range g.safeties {
		r, err := safetyRule(s)
		if err != nil {
			return err
		}
		o.policy.Rules = append(o.policy.Rules, r)
	}
	if g.surface != "" {
		surface := policy.Surface(g.surface)
		if !surface.Valid() {
			return fmt.Errorf("-surface %q is not one of caller, model", g.surface)
		}
		o.policy.Rules = append(o.policy.Rules, policy.Rule{
			Name:     "-surface " + g.surface,
			Settings: policy.Settings{Surface: surface},
		})
	}
	if err := firstProblem(o.policy.Validate()); err != nil || g.policy == "" {
		return err
	}
	file, err := policy.Load(g.policy)
	if err != nil {
		return fmt.Errorf("-policy: %w", firstOf(err))
	}
	for i, r := range file.Rules {
		if r.Name == "" {
			r.Name = "rules[" + strconv.Itoa(i) + "]" // as in the file alone
		}
		o.policy.Rules = append(o.policy.Rules, r)
	}
	return nil
}

// firstProblem says in one line what is wrong with a policy.
func firstProblem(err error) error {
	var problem *policy.RuleError
	if !errors.As(err, &problem) {
		return err
	}
	return fmt.Errorf("%s: %s", problem.Rule, problem.Problem)
}

// problems are what is wrong with a file; none where it could not be read at all.
func problems(err error) []error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()
	}
	return nil
}

// firstOf says in one line what is wrong with a file.
func firstOf(err error) error {
	switch all := problems(err); len(all) {
	case 0:
		return err
	case 1:
		return all[0]
	default:
		return fmt.Errorf("%w (and %d more: -lint tells them all)", all[0], len(all)-1)
	}
}

// name is what the policy knows the server by.
func (o *options) name() string {
	switch {
	case o.server != "":
		return o.server
	case o.endpoint != nil:
		return o.address()
	}
	return o.label()
}

// annotations are what the server says of a tool, in the words of the policy.
func (d *doctor) annotations(tool *mcp.Tool) *policy.Annotations {
	_, keyed := idempotency.Announced(d.session.InitializeResult().Capabilities)
	a := &policy.Annotations{Keyed: keyed}
	if hints := tool.Annotations; hints != nil {
		a.ReadOnly, a.Idempotent = hints.ReadOnlyHint, hints.IdempotentHint
	}
	return a
}
