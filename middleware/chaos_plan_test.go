package middleware_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// A manner is what the caller does beyond one call.
type manner string

const (
	callsOnce   manner = "once"
	asFramework manner = "framework" // calls again where the error looks like a lost connection
	asModel     manner = "model"     // asks again with equal arguments after a failure
	asRunner    manner = "runner"    // is resumed: the same intent again, whatever came of it
	asRestarted manner = "restarted" // the same in another process over the same ledger
	withOwnKey  manner = "own key"   // the same key again, whatever came of it
	inACrowd    manner = "crowd"     // the same intent from several callers at once
)

const (
	chaosCancels = 6                      // one intent in so many is cancelled
	chaosPause   = 300 * time.Millisecond // between intents of a caller, on average
)

// A chaosPlan is what is to happen to one intent. It depends on the seed alone.
type chaosPlan struct {
	order  int
	class  policy.Safety
	asks   bool // the tool asks the user first
	faults []middlewaretest.Fault
	manner manner
	named  bool          // by an intent
	limit  time.Duration // deadline of each call; 0 is none, and a context that outlives it
	cancel time.Duration // when the caller gives up; 0 is never
	takes  int           // milliseconds that the tool takes
	pause  time.Duration // before the first call
}

// chaosPlanner draws plans for one caller.
type chaosPlanner struct {
	*rand.Rand
	plain, rounds [][]middlewaretest.Fault // by kind
	limited       bool                     // the policy ends a silent attempt by itself
	wait          time.Duration            // before an intent, on average
}

func (p *chaosPlanner) next(order int) chaosPlan {
	plan := chaosPlan{
		order:  order,
		class:  pick(p.Rand, []policy.Safety{policy.ReadOnly, policy.Idempotent, policy.Keyed, policy.Keyed, policy.Unsafe, policy.Unsafe, policy.Unsafe}),
		manner: pick(p.Rand, []manner{callsOnce, callsOnce, asFramework, asFramework, asModel, asRunner, asRestarted, withOwnKey, inACrowd}),
		named:  p.IntN(2) == 0,
		limit:  p.deadline(),
		takes:  max(0, p.IntN(20)-10),
		pause:  time.Duration(p.Int64N(int64(2*p.wait) + 1)),
	}
	p.meet(&plan)
	if p.IntN(chaosCancels) == 0 {
		plan.cancel = time.Duration(p.Int64N(int64(min(plan.limit, 60*time.Millisecond)))) + 1
	}
	return plan
}

// meet chooses the faults that the first attempts meet; one in ten calls meets none.
// The faults of rounds strike tools that ask, one for each intent: a tool that asks
// in one attempt and runs unasked in another has two effects whatever a client does.
func (p *chaosPlanner) meet(plan *chaosPlan) {
	all := p.plain
	plan.asks = p.IntN(12) == 0
	if plan.asks {
		all = p.rounds
	}
	for len(plan.faults) < 3 && p.IntN(10) > 0 {
		f := pick(p.Rand, pick(p.Rand, all))
		plan.faults = append(plan.faults, f)
		if f.Needs&middlewaretest.NeedsDeadline != 0 && !p.limited {
			plan.limit = min(plan.limit, 60*time.Millisecond+time.Duration(p.Int64N(int64(200*time.Millisecond))))
		}
		if plan.asks || p.IntN(3) > 0 {
			return
		}
	}
}

func (p *chaosPlanner) deadline() time.Duration {
	switch p.IntN(10) {
	case 0:
		return time.Second + time.Duration(p.Int64N(int64(2*time.Second)))
	case 1, 2, 3:
		return 40*time.Millisecond + time.Duration(p.Int64N(int64(100*time.Millisecond)))
	}
	return 150*time.Millisecond + time.Duration(p.Int64N(int64(500*time.Millisecond)))
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// chaosFaults are the faults of the catalogue that a server can put on the wire, and
// for each one that does not claim a refusal its variants in which the tool does not
// run, runs before and runs after. The second list are those of rounds.
func chaosFaults(so *middlewaretest.Options) (plain, rounds []middlewaretest.Fault) {
	known := map[string]bool{}
	for _, f := range middlewaretest.Faults() {
		if !f.Applies(so) {
			continue
		}
		known[f.Name] = true
		if strings.HasPrefix(f.Name, "round") {
			rounds = append(rounds, f)
			continue
		}
		plain = append(plain, f)
	}
	for _, f := range plain {
		for _, v := range chaosVariants(so, f) {
			if !known[v.Name] {
				known[v.Name] = true
				plain = append(plain, v)
			}
		}
	}
	return plain, rounds
}

// chaosVariants leave out the lies that are believed: an answer that claims a
// refusal after the tool ran.
func chaosVariants(so *middlewaretest.Options, f middlewaretest.Fault) []middlewaretest.Fault {
	want := f.Expected(so)
	switch {
	case claimsRefusal(want) || strings.HasPrefix(f.Name, "redirect-30") && f.Status >= 307:
		return nil
	case strings.Contains(f.Name, "-executed") || f.Status == 0 && f.Ending == middlewaretest.EndComplete:
		return nil
	case f.Execute == middlewaretest.Never:
		return []middlewaretest.Fault{f.Executed(), f.ExecutedLater()}
	case want.Outcome == string(observe.ToolSuccess):
		return []middlewaretest.Fault{f.ExecutedLater()}
	}
	not := f
	not.Name, not.Execute = f.Name+"-not-executed", middlewaretest.Never
	return []middlewaretest.Fault{not, f.ExecutedLater()}
}

// byKind groups faults, so that a kind with many of them does not crowd out the
// others.
func byKind(so *middlewaretest.Options, faults []middlewaretest.Fault) [][]middlewaretest.Fault {
	place := map[string]int{}
	var groups [][]middlewaretest.Fault
	for _, f := range faults {
		kind := chaosKind(so, f)
		i, known := place[kind]
		if !known {
			i = len(groups)
			place[kind], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], f)
	}
	return groups
}

func claimsRefusal(e middlewaretest.Expectation) bool {
	return e.Delivery == string(observe.Refused) || e.Delivery == string(observe.NotSent)
}

// tool is the name of the tool that a plan calls. Each caller has tools of its own,
// so that faults meet the calls that they are meant for.
func (p *chaosPlan) tool(worker int) string {
	name := map[policy.Safety]string{policy.ReadOnly: "read", policy.Idempotent: "label", policy.Keyed: "keyed", policy.Unsafe: "pay"}[p.class]
	if p.asks {
		name += "_ask"
	}
	return fmt.Sprintf("%s_%d", name, worker)
}
