package policy_test

import (
	"fmt"
	"time"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// The article's own advice: reads are repeated, payments only with a key.
func Example() {
	p := &policy.Policy{Rules: []policy.Rule{
		{
			Name: "reads", Tool: "get_*",
			Settings: policy.Settings{Safety: policy.ReadOnly},
		},
		{
			Name: "payments", Server: "bank", Tool: "pay_*",
			Settings: policy.Settings{
				Safety: policy.Keyed,
				Key:    policy.Key{Header: "Idempotency-Key"},
			},
		},
		{
			Name: "overload", Server: "bank", // this gateway sheds load before the tool
			Settings: policy.Settings{Retry: policy.Retry{RefusedStatuses: []int{529}}},
		},
		{
			Name:     "patience",
			Settings: policy.Settings{Limits: policy.Limits{Call: time.Minute}},
		},
	}}
	if err := p.Validate(); err != nil {
		fmt.Println(err)
		return
	}

	unavailable := policy.Attempt{Outcome: observe.HTTPError, Delivery: observe.Unknown, Status: 503}
	first := policy.State{Remaining: time.Minute, Budget: true, Rand: 0.5}
	for _, name := range []string{"get_balance", "pay_bill", "send_mail"} {
		tool := p.Resolve("bank", name, nil)
		d := tool.Decide(unavailable, first)
		fmt.Printf("%s (%s): %s %s, rule %q\n", name, tool.Safety, d.Action, d.Wait, d.Rule)
	}
	// Output:
	// get_balance (read_only): repeat 100ms, rule "reads"
	// pay_bill (keyed): repeat 100ms, rule "payments"
	// send_mail (unsafe): stop 0s, rule "default"
}

// A payment in doubt is looked for by the order's number and the call's key.
func ExampleReconcile() {
	p := &policy.Policy{Rules: []policy.Rule{
		{Tool: "pay", Settings: policy.Settings{Reconcile: &policy.Reconcile{
			Tool:         "find_payment",
			Arguments:    map[string]string{"order": "/order/id", "key": policy.ReconcileKey},
			Happened:     policy.AnswerMatch{At: "/status", In: []string{"paid", "settled"}},
			DidNotHappen: policy.AnswerMatch{Text: "no such payment"},
		}}},
		{Tool: "find_*", Settings: policy.Settings{Safety: policy.ReadOnly}},
	}}
	fmt.Println(p.Validate(), p.Resolve("bank", "pay", nil).Source("reconcile"))
	// Output: <nil> rules[0]
}
