package main

import (
	"time"

	"github.com/surecall/surecall/policy"
)

// rules is the policy: what the operator knows of the tools. A tool of which no
// rule speaks is unsafe. For each setting, the first rule that matches and sets it
// decides.
func rules() *policy.Policy {
	return &policy.Policy{Rules: []policy.Rule{
		{
			Name: "reads", Tool: "read_*",
			Settings: policy.Settings{Safety: policy.ReadOnly},
		},
		{
			Name: "labels", Tool: "set_label",
			Settings: policy.Settings{Safety: policy.Idempotent},
		},
		{
			Name: "keyed", Tool: "pay_keyed",
			Settings: policy.Settings{Safety: policy.Keyed},
		},
		{
			Name: "payments", Tool: "pay*", // the model is told of failures
			Settings: policy.Settings{Surface: policy.SurfaceModel},
		},
		{
			Name: "mail", Tool: "send_mail", // two at once, then one a minute
			Settings: policy.Settings{
				Surface: policy.SurfaceModel,
				Limiter: policy.Limiter{Rate: 1.0 / 60, Burst: 2, NoWait: new(true)},
			},
		},
		{
			Name: "report", Tool: "read_report", // after three failures, none for a minute
			Settings: policy.Settings{
				Surface: policy.SurfaceModel,
				Breaker: policy.Breaker{Failures: 3, Open: time.Minute},
			},
		},
	}}
}
