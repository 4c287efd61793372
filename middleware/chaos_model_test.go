package middleware_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// A chaosTruth is what the server knows of an intent, or of one of its calls.
type chaosTruth struct {
	posts, effects int
	answers        int // whole answers with a result that were sent
	faults         []string
}

// truth reads the server's ledger, by intent and by call.
func (w *chaosWorld) truth() (intents map[int]*chaosTruth, calls map[string]*chaosTruth) {
	answered := map[string]bool{"": true}
	for _, f := range append(w.plain, w.rounds...) {
		o := f.Expected(&w.options).Outcome
		answered[f.Name] = o == string(observe.ToolSuccess) || o == string(observe.ToolError)
	}
	intents, calls = map[int]*chaosTruth{}, map[string]*chaosTruth{}
	for _, e := range w.server.Entries() {
		var args struct{ Order *int }
		if e.Method != "tools/call" || json.Unmarshal(e.Arguments, &args) != nil || args.Order == nil {
			continue
		}
		var mark string
		_ = json.Unmarshal(e.Meta[chaosMark], &mark)
		for _, t := range []*chaosTruth{at(intents, *args.Order), at(calls, mark)} {
			t.add(&e, answered[e.Fault] && e.Status/100 == 2)
		}
	}
	return intents, calls
}

func at[K comparable](m map[K]*chaosTruth, k K) *chaosTruth {
	if m[k] == nil {
		m[k] = &chaosTruth{}
	}
	return m[k]
}

func (t *chaosTruth) add(e *middlewaretest.Entry, answered bool) {
	t.posts++
	if e.Executed {
		t.effects++
	}
	if answered {
		t.answers++
	}
	t.faults = append(t.faults, e.Fault)
}

// met reports whether a fault struck a call.
func (t *chaosTruth) met(which func(fault string) bool) bool {
	for _, f := range t.faults {
		if which(f) {
			return true
		}
	}
	return false
}

func forgetsSessions(fault string) bool { return strings.HasPrefix(fault, "session-forgotten") }

// The 404 of a server that has forgotten the session, which a ping confirms, claims that
// the tool did not run, and is reported so. No unsafe call is sent again for it.
func liesOfSession(fault string) bool {
	return fault == "session-forgotten-executed" || strings.HasPrefix(fault, "status-404") && strings.Contains(fault, "-executed")
}

func (s *chaosSaid) believesSession(call *chaosTruth) bool {
	lost := func(a observe.Attempt) bool { return a.Outcome == observe.SessionLost }
	return slices.ContainsFunc(s.record.Attempts, lost) && call.met(liesOfSession)
}

// judge compares what every caller was told with what the server did, when nothing
// is under way any more. Never may there be: two effects of an unsafe intent, or of
// a keyed one, whose server honours keys; a success for which the server sent no
// whole answer; a call said to be not sent or refused whose tool ran; a call that
// comes back later than its deadline.
func (w *chaosWorld) judge(table *chaosTable, machine *stalls) []string {
	var all []string
	intents, calls := w.truth()
	for _, in := range w.intents {
		truth := at(intents, in.order)
		complaints := in.complaints(truth)
		for _, said := range in.calls {
			said.late = max(0, said.back.Sub(said.due)-machine.within(said.due, said.back))
			complaints = append(complaints, said.complaints(truth, at(calls, said.mark))...)
		}
		table.add(w, in, truth)
		if len(complaints) > 0 {
			all = append(all, fmt.Sprintf("%s:\n  %s\n%s", w.name, strings.Join(complaints, "\n  "), in.tell(truth, calls)))
		}
	}
	return all
}

func (in *chaosIntent) complaints(truth *chaosTruth) []string {
	var all []string
	if truth.effects > 1 && (in.class == policy.Unsafe || in.class == policy.Keyed) {
		all = append(all, fmt.Sprintf("%d effects of one %s intent", truth.effects, in.class))
	}
	return all
}

func (s *chaosSaid) complaints(intent, call *chaosTruth) []string {
	var all []string
	answers := call.answers
	if s.replay {
		answers = intent.answers
	}
	if s.err == nil && s.record.Outcome != observe.InputRequired && answers == 0 {
		all = append(all, fmt.Sprintf("call %s: success, and the server sent no answer", s.mark))
	}
	if s.err == nil && s.record.Outcome == observe.ToolSuccess && intent.effects == 0 {
		all = append(all, fmt.Sprintf("call %s: success, and the tool did not run", s.mark))
	}
	if d := s.record.Delivery; (d == observe.NotSent || d == observe.Refused) && call.effects > 0 && !s.believesSession(call) {
		all = append(all, fmt.Sprintf("call %s: %s, and the tool ran", s.mark, d))
	}
	if s.late > chaosLateness {
		all = append(all, fmt.Sprintf("call %s: %v late", s.mark, s.late))
	}
	return all
}

// tell describes an intent for whoever looks for the fault.
func (in *chaosIntent) tell(truth *chaosTruth, calls map[string]*chaosTruth) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  intent %d: %s, manner %s, named %t, limit %v, cancel %v, %d POSTs, %d effects\n",
		in.order, in.name, in.manner, in.named, in.limit, in.cancel, truth.posts, truth.effects)
	for _, s := range in.calls {
		r, c := s.record, at(calls, s.mark)
		fmt.Fprintf(&b, "  call %s: %s %s, ledger %+v, replay %t, %d effects, faults %q\n    error %v\n", s.mark, r.Outcome, r.Delivery, r.Ledger, s.replay, c.effects, c.faults, s.err)
		for _, a := range r.Attempts {
			fmt.Fprintf(&b, "    attempt %s %s, %d POSTs, status %d, waited %.0f ms, took %.0f ms\n", a.Outcome, a.Delivery, a.PostCount, a.HTTPStatus, a.WaitMs, a.DurationMs)
		}
	}
	return b.String()
}
