package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/surecall/surecall/policy"
)

// takePolicy makes the policy: a rule for each -safety in their order, which
// records name as it was written, and one for -surface.
func (o *options) takePolicy(g *given) error {
	o.policy = &policy.Policy{}
	for _, s := range g.safeties {
		r, err := safetyRule(s)
		if err != nil {
			return err
		}
		o.policy.Rules = append(o.policy.Rules, r)
	}
	surface := policy.Surface(g.surface)
	if !surface.Valid() {
		return fmt.Errorf("-surface %q is not one of caller, model", g.surface)
	}
	o.policy.Rules = append(o.policy.Rules, policy.Rule{
		Name:     "-surface " + g.surface,
		Settings: policy.Settings{Surface: surface},
	})
	return firstProblem(o.policy.Validate())
}

func safetyRule(s string) (policy.Rule, error) {
	glob, class, ok := strings.Cut(s, "=")
	if !ok || glob == "" || class == "" {
		return policy.Rule{}, fmt.Errorf("-safety %q is not GLOB=CLASS", s)
	}
	return policy.Rule{
		Name:     "-safety " + s,
		Tool:     glob,
		Settings: policy.Settings{Safety: policy.Safety(class)},
	}, nil
}

// firstProblem says in one line what is wrong with a policy.
func firstProblem(err error) error {
	var problem *policy.RuleError
	if !errors.As(err, &problem) {
		return err
	}
	return fmt.Errorf("%s: %s", problem.Rule, problem.Problem)
}
