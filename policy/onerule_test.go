package policy_test

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

var (
	everyDelivery = []observe.Delivery{observe.NotSent, observe.Refused, observe.Answered, observe.Unknown, "", "bogus"}
	everySafety   = append([]policy.Safety{"", "bogus"}, classes...)
	everyOutcome  = append(observe.Outcomes(), "", "NO_SUCH")
	someStatuses  = []int{0, 200, 302, 400, 401, 404, 408, 409, 422, 425, 429, 499, 500, 503, 511, 520, 529}
	someCodes     = []int64{-32700, -32020, -32603, -32005, 7}
	someText      = "busy, try again later"
)

// everyRule holds each field of Retry that widens what is repeated, alone, and all
// of them together.
func everyRule() map[string]func(*policy.EffectiveRetry) {
	fields := map[string]func(*policy.EffectiveRetry){
		"outcomes":         func(r *policy.EffectiveRetry) { r.Outcomes = everyOutcome },
		"statuses":         func(r *policy.EffectiveRetry) { r.Statuses = someStatuses },
		"codes":            func(r *policy.EffectiveRetry) { r.Codes = someCodes },
		"tool errors":      func(r *policy.EffectiveRetry) { r.ToolErrors = []string{"busy"} },
		"refused statuses": func(r *policy.EffectiveRetry) { r.RefusedStatuses = someStatuses },
		"refused codes":    func(r *policy.EffectiveRetry) { r.RefusedCodes = someCodes },
		"throttled":        func(r *policy.EffectiveRetry) { r.Throttled = false },
		"healed":           func(r *policy.EffectiveRetry) { r.Healed = true },
		"unbounded":        func(r *policy.EffectiveRetry) { *r = policy.EffectiveRetry{Repeats: 1 << 30, Throttled: true} },
	}
	alone := maps.Clone(fields)
	fields["all"] = func(r *policy.EffectiveRetry) {
		alone["unbounded"](r)
		for name, set := range alone {
			if name != "throttled" && name != "unbounded" {
				set(r)
			}
		}
	}
	fields["none"] = func(*policy.EffectiveRetry) {}
	return fields
}

// everyState is a state with nothing in the way of a repeat, and with all that
// could make one.
func everyState() []policy.State {
	var states []policy.State
	for _, graver := range everyDelivery {
		plain := policy.State{Remaining: policy.NoDeadline, Budget: true, Graver: graver, Rand: 0.5}
		cured := plain
		cured.Healed, cured.Refreshed = true, true
		states = append(states, plain, cured)
	}
	return states
}

// holds reports what a decision must not be, whatever the rules say: the one rule
// of the design, written again without a look at the code.
func holds(s policy.Safety, a *policy.Attempt, st *policy.State, d policy.Decision) (string, bool) {
	harmless := s == policy.ReadOnly || s == policy.Idempotent || s == policy.Keyed
	mayHaveRun := func(d observe.Delivery) bool { return d != observe.NotSent && d != observe.Refused }
	switch {
	case d.Action != policy.Repeat && d.Action != policy.Stop:
		return "no such action", false
	case d.Reason == "" || d.Rule == "":
		return "a decision without reason or rule", false
	case d.Action == policy.Stop:
		return "a wait before nothing", d.Wait == 0
	case d.Wait < 0:
		return "a wait below zero", false
	case !harmless && mayHaveRun(a.Delivery):
		return "an unsafe tool that may have run is repeated", false
	case !harmless && st.Graver != "" && mayHaveRun(st.Graver):
		return "an unsafe tool that may have run in an earlier attempt is repeated", false
	case a.DoNotRetry:
		return "repeated against the server's word", false
	case a.SessionEnded:
		return "repeated in a session that has ended", false
	case st.Remaining != policy.NoDeadline && d.Wait >= st.Remaining:
		return "a wait beyond the deadline", false
	case a.HasRetryAfter && d.Wait < a.RetryAfter:
		return "a server's wait is shortened", false
	}
	switch a.Outcome {
	case observe.ToolSuccess, observe.InputRequired, observe.ExtensionResult,
		observe.Canceled, observe.BreakerOpen, observe.RateLimited, observe.Blocked, "", "NO_SUCH":
		return "what must end is repeated", false
	}
	return "", true
}

// TestOneRule walks every combination of safety, outcome, delivery, status, code,
// rule field and state.
func TestOneRule(t *testing.T) {
	states := everyState()
	for name, rule := range everyRule() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repeats := 0
			for _, s := range everySafety {
				tool := tool(s, func(t *policy.Tool) { rule(&t.Retry) })
				everyAttempt(func(a policy.Attempt) {
					for i := range states {
						d := tool.Decide(a, states[i])
						if problem, ok := holds(s, &a, &states[i], d); !ok {
							t.Fatalf("%s: safety %q, %+v, %+v: %+v", problem, s, a, states[i], d)
						}
						if d.Action == policy.Repeat {
							repeats++
						}
					}
				})
			}
			if repeats == 0 {
				t.Error("nothing is repeated: the walk shows nothing")
			}
		})
	}
}

// TestOneRuleOfEverySetting walks every combination of safety, outcome, delivery,
// status and code for every setting there is, alone in a rule, with each of its
// values that could widen what is repeated. What is valid goes through a file.
func TestOneRuleOfEverySetting(t *testing.T) {
	states := []policy.State{start(), start()}
	states[1].Healed, states[1].Refreshed = true, true
	for _, name := range policy.Fields() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			walked := 0
			for _, s := range everySafety {
				for _, v := range wideValues(name) {
					rule := policy.Rule{Settings: policy.Settings{Safety: s}}
					policy.SettingAt(&rule.Settings, name).Set(v)
					tool := throughFile(t, &policy.Policy{Rules: []policy.Rule{rule}}).Resolve("server", "tool", &policy.Annotations{})
					everyAttempt(func(a policy.Attempt) {
						for i := range states {
							d := tool.Decide(a, states[i])
							if problem, ok := holds(tool.Safety, &a, &states[i], d); !ok {
								t.Fatalf("%s: %s: %v: safety %q, %+v, %+v: %+v", problem, name, v, tool.Safety, a, states[i], d)
							}
							walked++
						}
					})
				}
			}
			if walked == 0 {
				t.Error("the setting has no value")
			}
		})
	}
}

// throughFile is the policy as a file gives it, where it has one.
func throughFile(t *testing.T, p *policy.Policy) *policy.Policy {
	t.Helper()
	file, err := policy.Marshal(p)
	if err != nil {
		return p
	}
	read, err := policy.Parse("f", file)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// wideValues are the values of a setting that ask for the most.
func wideValues(name string) []reflect.Value {
	m := memberAt(name)
	one := func(values ...any) []reflect.Value {
		var all []reflect.Value
		for _, v := range values {
			all = append(all, reflect.ValueOf(v).Convert(m.Type))
		}
		return all
	}
	switch of := m.Type; {
	case policy.Words(of, "") != nil:
		var all []reflect.Value
		for _, w := range policy.Words(of, "") {
			all = append(all, reflect.ValueOf(w).Convert(of))
		}
		return all
	case of == reflect.TypeFor[*bool]():
		return one(new(true), new(false))
	case of == reflect.TypeFor[[]int]():
		return one(slices.DeleteFunc(slices.Clone(someStatuses), func(s int) bool { return s < 300 }))
	case of == reflect.TypeFor[[]int64]():
		return one(someCodes)
	case of == reflect.TypeFor[[]string]():
		if words := policy.Words(of.Elem(), m.Form); words != nil {
			return one(words)
		}
		return one([]string{"busy"})
	case of.Kind() == reflect.String:
		return one("x")
	case reflect.Zero(of).CanInt() || reflect.Zero(of).CanFloat():
		return one(-1, 1<<30)
	}
	return []reflect.Value{reflect.Zero(m.Type)} // says nothing of decisions
}

// A policy from a random file keeps the one rule, and what it decides is what it
// decides when written in Go.
func TestOneRuleOfAnyFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyValidPolicy(t)
		file, err := policy.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		read, err := policy.Parse("f", file)
		if err != nil {
			t.Fatal(err)
		}
		hints := &policy.Annotations{ReadOnly: rapid.Bool().Draw(t, "readOnly"), Idempotent: rapid.Bool().Draw(t, "idempotent")}
		name := rapid.SampledFrom([]string{"read_x", "pay", "*x", ""}).Draw(t, "tool")
		tool, want := read.Resolve("server", name, hints), p.Resolve("server", name, hints)
		a, s := anyAttempt().Draw(t, "attempt"), anyState().Draw(t, "state")
		everyAttempt(func(a policy.Attempt) {
			s := start()
			if problem, ok := holds(tool.Safety, &a, &s, tool.Decide(a, s)); !ok {
				t.Fatalf("%s: %+v\n%s", problem, a, file)
			}
		})
		d := tool.Decide(a, s)
		if problem, ok := holds(tool.Safety, &a, &s, d); !ok {
			t.Fatalf("%s: %+v\n%s", problem, d, file)
		}
		if d != want.Decide(a, s) || !reflect.DeepEqual(tool, want) {
			t.Fatalf("read from a file: %+v\nwritten in Go: %+v\n%s", tool, want, file)
		}
	})
}

func everyAttempt(visit func(policy.Attempt)) {
	for _, o := range everyOutcome {
		for _, d := range everyDelivery {
			for _, status := range someStatuses {
				a := policy.Attempt{Outcome: o, Delivery: d, Status: status, ToolErrorText: someText}
				visit(a)
				a.HasCode, a.EchoedID = true, true
				for _, code := range someCodes {
					a.Code = code
					visit(a)
				}
			}
		}
	}
}

// What rules name for harmless tools changes nothing for an unsafe one.
func TestNamesChangeNothingForUnsafeTools(t *testing.T) {
	rules := everyRule()
	plain := tool(policy.Unsafe)
	for _, name := range []string{"outcomes", "statuses", "codes", "tool errors"} {
		named := tool(policy.Unsafe, func(t *policy.Tool) { rules[name](&t.Retry) })
		for _, s := range everyState() {
			everyAttempt(func(a policy.Attempt) {
				got, want := named.Decide(a, s), plain.Decide(a, s)
				if got.Action != want.Action || got.Wait != want.Wait {
					t.Fatalf("%s: %+v, %+v: got %+v, want %+v", name, a, s, got, want)
				}
			})
		}
	}
}

func TestSafeRepeat(t *testing.T) {
	for _, s := range everySafety {
		for _, d := range everyDelivery {
			want := s == policy.ReadOnly || s == policy.Idempotent || s == policy.Keyed || d == observe.NotSent || d == observe.Refused
			if s.SafeRepeat(d) != want {
				t.Errorf("%q, %q: got %v", s, d, !want)
			}
		}
	}
}

// TestOneRuleOfAnyPolicy holds the same against random policies, as they are
// resolved.
func TestOneRuleOfAnyPolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &policy.Policy{Rules: rapid.SliceOfN(anyRule(), 0, 5).Draw(t, "rules")}
		hints := &policy.Annotations{ReadOnly: rapid.Bool().Draw(t, "readOnly"), Idempotent: rapid.Bool().Draw(t, "idempotent")}
		tool := p.Resolve("server", rapid.SampledFrom([]string{"read_x", "pay", ""}).Draw(t, "tool"), hints)
		a, s := anyAttempt().Draw(t, "attempt"), anyState().Draw(t, "state")
		d := tool.Decide(a, s)
		if problem, ok := holds(tool.Safety, &a, &s, d); !ok {
			t.Fatalf("%s: %+v", problem, d)
		}
		if d.Action == policy.Repeat && (s.Repeats >= tool.Retry.Repeats || tool.Retry.Budget > 0 && !s.Budget) {
			t.Fatalf("repeated beyond number or budget: %+v", d)
		}
		if again := tool.Decide(a, s); again != d {
			t.Fatalf("not pure: %+v, then %+v", d, again)
		}
	})
}

// A policy without a word of safety repeats nothing that may have run.
func TestPolicyWithoutSafety(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &policy.Policy{Rules: rapid.SliceOfN(anyRule(), 0, 5).Draw(t, "rules")}
		for i := range p.Rules {
			p.Rules[i].Safety, p.Rules[i].TrustAnnotations = "", nil
		}
		tool := p.Resolve("server", "read_x", &policy.Annotations{ReadOnly: true, Idempotent: true})
		a, s := anyAttempt().Draw(t, "attempt"), anyState().Draw(t, "state")
		d := tool.Decide(a, s)
		if d.Action == policy.Repeat && a.Delivery != observe.NotSent && a.Delivery != observe.Refused {
			t.Fatalf("repeated: %+v", d)
		}
	})
}

func anyRule() *rapid.Generator[policy.Rule] {
	return rapid.Custom(func(t *rapid.T) policy.Rule {
		duration := func(name string) time.Duration {
			return time.Duration(rapid.Int64Range(-2, 1e11).Draw(t, name))
		}
		return policy.Rule{
			Name:   rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name"),
			Server: rapid.SampledFrom([]string{"", "*", "server", "other"}).Draw(t, "server"),
			Tool:   rapid.SampledFrom([]string{"", "*", "read_*", "pay", "p?y"}).Draw(t, "tool"),
			Settings: policy.Settings{
				Safety:           rapid.SampledFrom(everySafety).Draw(t, "safety"),
				TrustAnnotations: rapid.Ptr(rapid.Bool(), true).Draw(t, "trust"),
				Retry: policy.Retry{
					Repeats:         rapid.IntRange(-1, 4).Draw(t, "repeats"),
					Backoff:         duration("backoff"),
					BackoffCap:      duration("cap"),
					RetryAfterCap:   duration("retry after"),
					Throttled:       rapid.Ptr(rapid.Bool(), true).Draw(t, "throttled"),
					Healed:          rapid.Ptr(rapid.Bool(), true).Draw(t, "healed"),
					Budget:          rapid.Float64Range(-1, 3).Draw(t, "budget"),
					Codes:           rapid.SliceOfN(rapid.SampledFrom(someCodes), 0, 3).Draw(t, "codes"),
					Statuses:        rapid.SliceOfN(rapid.SampledFrom(someStatuses), 0, 3).Draw(t, "statuses"),
					Outcomes:        rapid.SliceOfN(rapid.Map(rapid.SampledFrom(everyOutcome), func(o observe.Outcome) string { return string(o) }), 0, 3).Draw(t, "outcomes"),
					ToolErrors:      rapid.SliceOfN(rapid.SampledFrom([]string{"", "busy", "nope"}), 0, 2).Draw(t, "tool errors"),
					RefusedStatuses: rapid.SliceOfN(rapid.SampledFrom(someStatuses), 0, 3).Draw(t, "refused statuses"),
					RefusedCodes:    rapid.SliceOfN(rapid.SampledFrom(someCodes), 0, 3).Draw(t, "refused codes"),
				},
			},
		}
	})
}

func anyAttempt() *rapid.Generator[policy.Attempt] {
	return rapid.Custom(func(t *rapid.T) policy.Attempt {
		return policy.Attempt{
			Outcome:       rapid.SampledFrom(everyOutcome).Draw(t, "outcome"),
			Delivery:      rapid.SampledFrom(everyDelivery).Draw(t, "delivery"),
			Status:        rapid.SampledFrom(someStatuses).Draw(t, "status"),
			Code:          rapid.SampledFrom(someCodes).Draw(t, "code"),
			HasCode:       rapid.Bool().Draw(t, "hasCode"),
			EchoedID:      rapid.Bool().Draw(t, "echoed"),
			ToolErrorText: rapid.SampledFrom([]string{"", someText}).Draw(t, "text"),
			RetryAfter:    time.Duration(rapid.Int64().Draw(t, "retryAfter")),
			HasRetryAfter: rapid.Bool().Draw(t, "hasRetryAfter"),
			DoNotRetry:    rapid.Bool().Draw(t, "doNotRetry"),
			SessionEnded:  rapid.Bool().Draw(t, "sessionEnded"),
		}
	})
}

func anyState() *rapid.Generator[policy.State] {
	return rapid.Custom(func(t *rapid.T) policy.State {
		return policy.State{
			Repeats:      rapid.IntRange(-1, 5).Draw(t, "repeats"),
			Remaining:    time.Duration(rapid.Int64Range(-2, 1e11).Draw(t, "remaining")),
			Budget:       rapid.Bool().Draw(t, "budget"),
			Healed:       rapid.Bool().Draw(t, "healed"),
			HealSpent:    rapid.Bool().Draw(t, "healSpent"),
			Refreshed:    rapid.Bool().Draw(t, "refreshed"),
			RefreshSpent: rapid.Bool().Draw(t, "refreshSpent"),
			Graver:       rapid.SampledFrom(everyDelivery).Draw(t, "graver"),
			Rand:         rapid.Float64().Draw(t, "rand"),
		}
	})
}
