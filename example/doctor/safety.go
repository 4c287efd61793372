package main

import (
	"fmt"
	"strings"

	"github.com/surecall/surecall/policy"
)

// safetyRule is what a -safety means.
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
