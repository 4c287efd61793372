package policy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/surecall/surecall/observe"
)

// An ending is one end of an attempt, and how it is called in a row with others.
type ending struct {
	outcome string // the outcome, with words that tell it from its other ends
	detail  string // a status, a code, a text
	attempt Attempt
	state   State
	once    bool
}

// explained is a row of the table, with the setting that decides.
type explained struct {
	ExplainedDecision
	from field
}

// decisions asks [Tool.Decide] about every end that an attempt can have, and makes one
// row of those that are treated alike.
func (t *Tool) decisions() []explained {
	var rows []explained
	var groups [][]ending
	for _, e := range t.endings() {
		row := t.explain(&e)
		i := slices.IndexFunc(rows, func(r explained) bool { return r == row })
		if i < 0 {
			rows, groups, i = append(rows, row), append(groups, nil), len(rows)
		}
		groups[i] = append(groups[i], e)
	}
	for i := range rows {
		rows[i].When = when(groups[i])
	}
	return rows
}

func (t *Tool) explain(e *ending) explained {
	a := e.attempt
	if d, says := t.Declares(a.Outcome, a.Status, a.Code, a.HasCode); says {
		a.Delivery = d
	}
	d := t.Decide(a, e.state)
	return explained{
		ExplainedDecision: ExplainedDecision{Delivery: string(a.Delivery), Decision: d, Once: e.once && d.Action == Repeat},
		from:              t.decidedBy(&a, &e.state, d),
	}
}

// decidedBy is the setting behind a decision.
func (t *Tool) decidedBy(a *Attempt, s *State, d Decision) field {
	r := t.ruling(a, s)
	switch {
	case d.Action == Repeat, !r.repeat:
		return r.from
	case t.Retry.Repeats <= 0:
		return fieldRepeats
	}
	return fieldNone
}

// endings are all ends of a first attempt, in the order of docs/policy.md.
func (t *Tool) endings() []ending {
	fresh := State{Remaining: NoDeadline, Budget: true, Rand: 1 - 0x1p-53}
	var all []ending
	add := func(outcome, detail string, a Attempt) { all = append(all, ending{outcome, detail, a, fresh, false}) }
	plain := func(delivery observe.Delivery, words string, outcomes ...observe.Outcome) {
		for _, o := range outcomes {
			add(string(o)+words, "", Attempt{Outcome: o, Delivery: delivery})
		}
	}
	plain(observe.NotSent, " before sending", observe.NetworkError, observe.Timeout)
	for _, status := range t.statuses() {
		add(string(observe.HTTPError), strconv.Itoa(status), Attempt{Outcome: observe.HTTPError, Status: status, Delivery: observe.StatusDelivery(status)})
	}
	plain(observe.Unknown, " after sending", observe.NetworkError, observe.Timeout)
	plain(observe.Unknown, "", observe.StreamIncomplete)
	all = append(all, cures(fresh)...)
	for _, code := range t.codes() {
		delivery := observe.Answered
		if observe.CodeRefused(code) {
			delivery = observe.Refused
		}
		add(string(observe.JSONRPCError), strconv.FormatInt(code, 10), Attempt{Outcome: observe.JSONRPCError, Code: code, HasCode: true, Delivery: delivery})
	}
	add(string(observe.JSONRPCError), "any other code", Attempt{Outcome: observe.JSONRPCError, Delivery: observe.Answered})
	for _, text := range t.Retry.ToolErrors {
		add(string(observe.ToolError), "with "+strconv.Quote(text), Attempt{Outcome: observe.ToolError, ToolErrorText: text, Delivery: observe.Answered})
	}
	plain(observe.Answered, "", observe.ToolError)
	plain(observe.Unknown, "", observe.MalformedJSON, observe.InvalidEnvelope, observe.InvalidToolResult, observe.UnexpectedContent, observe.ResultTooLarge)
	add(string(observe.Redirected), "307, 308", Attempt{Outcome: observe.Redirected, Status: 307, Delivery: observe.Refused})
	add(string(observe.Redirected), "301-303", Attempt{Outcome: observe.Redirected, Status: 302, Delivery: observe.Unknown})
	plain(observe.Answered, "", observe.ToolSuccess, observe.InputRequired, observe.ExtensionResult)
	plain(observe.NotSent, "", observe.Canceled, observe.BreakerOpen, observe.RateLimited, observe.Blocked)
	return all
}

// cures are the ends whose cause can be taken away before a repeat.
func cures(fresh State) []ending {
	healed, refreshed := fresh, fresh
	healed.Healed, refreshed.Refreshed = true, true
	lost := Attempt{Outcome: observe.SessionLost, Delivery: observe.Refused}
	mismatch := Attempt{Outcome: observe.JSONRPCError, Code: codeHeaderMismatch, HasCode: true, Delivery: observe.Refused}
	echoed := mismatch
	echoed.EchoedID = true
	return []ending{
		{"SESSION_LOST, renewed", "", lost, healed, true},
		{"SESSION_LOST, not renewed", "", lost, fresh, false},
		{"header mismatch (-32020), tool refreshed, the call's id in the error", "", echoed, refreshed, true},
		{"header mismatch (-32020), tool refreshed, no id in the error", "", mismatch, refreshed, true},
	}
}

// statuses are the errors of HTTP, and what the rules name beyond them.
func (t *Tool) statuses() []int {
	var all []int
	for status := 400; status < 600; status++ {
		all = append(all, status)
	}
	all = append(append(all, t.Retry.Statuses...), t.Retry.RefusedStatuses...)
	slices.Sort(all)
	return slices.Compact(all)
}

// codes are those of JSON-RPC and MCP that mean something to the table, and what the
// rules name.
func (t *Tool) codes() []int64 {
	all := []int64{-32700, -32600, -32601, -32602, -32603, -32021, -32022}
	for _, code := range append(slices.Clone(t.Retry.Codes), t.Retry.RefusedCodes...) {
		if !slices.Contains(all, code) && code != codeHeaderMismatch {
			all = append(all, code)
		}
	}
	return all
}

// when names the ends of one row: each outcome once, with its details after it.
func when(endings []ending) string {
	var names []string
	details := make(map[string][]string)
	for _, e := range endings {
		if !slices.Contains(names, e.outcome) {
			names = append(names, e.outcome)
		}
		if e.detail != "" {
			details[e.outcome] = append(details[e.outcome], e.detail)
		}
	}
	for i, name := range names {
		if d := details[name]; d != nil {
			names[i] = name + " " + strings.Join(ranges(d), ", ")
		}
	}
	return strings.Join(names, ", ")
}

// ranges writes three or more numbers in a row as the first and the last.
func ranges(details []string) []string {
	var out []string
	for i := 0; i < len(details); {
		end := i + 1
		for end < len(details) && follows(details[end-1], details[end]) {
			end++
		}
		if end-i > 2 {
			out = append(out, fmt.Sprintf("%s-%s", details[i], details[end-1]))
		} else {
			out = append(out, details[i:end]...)
		}
		i = end
	}
	return out
}

func follows(a, b string) bool {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	return errX == nil && errY == nil && x > 0 && x < math.MaxInt && y == x+1
}
