package policy

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/surecall/surecall/observe"
)

// A RuleError is one thing that is wrong with a rule.
type RuleError struct {
	// Rule is the rule's name, or "rules[i]"; Index is its place in the policy.
	Rule  string
	Index int
	// Setting is "name", "server", "tool" or one of [Fields].
	Setting string
	// Problem says what is wrong.
	Problem string

	item int // of the setting's list, counted from 1; 0 is the setting as a whole
}

// Error names the rule and the setting, and says what is wrong.
func (e *RuleError) Error() string {
	return "policy: rule " + strconv.Quote(e.Rule) + ": " + e.Setting + ": " + e.Problem
}

// Validate reports everything that is wrong with the rules, all at once: nil, or
// an error whose Unwrap() []error gives a [*RuleError] for each problem, in the
// order of the rules. A policy that it reports still resolves, in the cautious
// way.
func (p *Policy) Validate() error {
	if p == nil {
		return nil
	}
	problems := p.problems()
	all := make([]error, len(problems))
	for i, e := range problems {
		all[i] = e
	}
	return errors.Join(all...)
}

func (p *Policy) problems() []*RuleError {
	var found []*RuleError
	named := make(map[string]bool, len(p.Rules))
	var before cover
	harmless := p.harmless()
	for i := range p.Rules {
		r := &p.Rules[i]
		c := check{rule: r.label(i), index: i}
		c.name(r, named)
		c.isLast(r, len(p.Rules)-1)
		c.globs(r)
		c.settings(&r.Settings)
		c.keyHeader(r, harmless)
		c.retry(&r.Settings.Retry)
		c.endless(&r.Settings)
		c.unsafe(r, harmless)
		c.session(r)
		c.counts(p, &before)
		found = append(found, c.found...)
	}
	return found
}

// check collects what is wrong with one rule.
type check struct {
	rule  string
	index int
	found []*RuleError
}

func (c *check) report(setting, problem string) { c.reportItem(setting, -1, problem) }

// reportItem reports one item of a setting's list.
func (c *check) reportItem(setting string, i int, problem string) {
	c.found = append(c.found, &RuleError{Rule: c.rule, Index: c.index, Setting: setting, Problem: problem, item: i + 1})
}

// name: records and reasons tell rules apart by it.
func (c *check) name(r *Rule, named map[string]bool) {
	switch {
	case r.Name == sourceDefault, r.Name == sourceAnnotations:
		c.report("name", "the name stands for something that is no rule")
	case named[c.rule]:
		c.report("name", "another rule has the same name")
	}
	named[c.rule] = true
}

// isLast: a file has a place of its own for the rule that speaks last.
func (c *check) isLast(r *Rule, last int) {
	if r.Name == sourceDefaults && (c.index != last || r.Server != "" || r.Tool != "") {
		c.report("name", "the name is that of the last rule, which matches everything (defaults in a file)")
	}
}

func (c *check) globs(r *Rule) {
	if problem := badText(r.Server); problem != "" {
		c.report("server", problem)
	}
	if problem := badText(r.Tool); problem != "" {
		c.report("tool", problem)
	}
	// Tools have no such names (MCP 2026-07-28, tool names), so that a pattern
	// written for another kind of glob would silently match nothing. A server may
	// be an address, [::1] among them.
	if i := strings.IndexAny(r.Tool, `[]{}\|,`); i >= 0 {
		c.report("tool", "only * and ? are special in a glob, not "+strconv.Quote(r.Tool[i:i+1]))
	}
}

func badText(s string) string {
	switch {
	case !utf8.ValidString(s):
		return "not valid UTF-8"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "holds a control character"
	case strings.TrimSpace(s) != s:
		return "begins or ends with a space"
	}
	return ""
}

func (c *check) settings(s *Settings) {
	if s.Safety != "" && !s.Safety.Valid() {
		c.report(fields[fieldSafety].name, strconv.Quote(string(s.Safety))+" is not one of read_only, idempotent, keyed, unsafe"+didYouMean(string(s.Safety), words[typeSafety]))
	}
	if s.Surface != "" && !s.Surface.Valid() {
		c.report(fields[fieldSurface].name, strconv.Quote(string(s.Surface))+" is not one of caller, model, model_protocol, model_transport"+didYouMean(string(s.Surface), words[typeSurface]))
	}
	if s.Gate != "" && !s.Gate.Valid() {
		c.report(fields[fieldGate].name, strconv.Quote(string(s.Gate))+" is not one of server, tool, off"+didYouMean(string(s.Gate), words[typeGate]))
	}
	for i, d := range s.Tolerate {
		if !slices.Contains(observe.Deviations(), observe.Deviation(d)) {
			c.reportItem(fields[fieldTolerate].name, i, strconv.Quote(d)+" is not a deviation"+didYouMean(d, formWords["deviation"]))
		}
	}
	for i, r := range s.ResultTypes {
		if r == "" || r == "complete" || r == "input_required" {
			c.reportItem(fields[fieldResultTypes].name, i, strconv.Quote(r)+" is not an extension's")
		}
	}
	if s.Breaker.Open < 0 {
		c.report(fields[fieldOpen].name, "a negative time means nothing; breaker.failures turns the breaker off")
	}
	if s.Limiter.Burst < 0 {
		c.report(fields[fieldBurst].name, "a negative burst means nothing; limiter.rate turns the limiter off")
	}
	if !finite(s.Limiter.Rate) {
		c.report(fields[fieldRate].name, "not a finite number; a negative one is no limit")
	}
	c.keyNames(&s.Key)
	c.reconcile(s)
}

// reconcile: an answer that is read as proof has to be named in words.
func (c *check) reconcile(s *Settings) {
	r := s.Reconcile
	if r == nil {
		return
	}
	report := func(problem string) { c.report(fields[fieldReconcile].name, problem) }
	set := len(r.Arguments) > 0 || r.Happened.set() || r.DidNotHappen.set()
	switch {
	case r.Tool == "" && set:
		report("names no tool to ask")
	case r.Tool != "" && !r.Happened.set() && !r.DidNotHappen.set():
		report("says neither by what answer a call has happened nor by what it has not")
	case r.Tool != "" && (s.Safety == ReadOnly || s.Safety == Idempotent):
		report("a tool whose repeat is harmless needs none")
	}
	for _, m := range []AnswerMatch{r.Happened, r.DidNotHappen} {
		switch {
		case m.At != "" && m.At[0] != '/':
			report(strconv.Quote(m.At) + " is not a JSON Pointer: it begins with /")
		case m.At == "" && len(m.In) > 0:
			report("values to compare with, but no place where they stand")
		}
	}
	for name, from := range r.Arguments {
		if strings.HasPrefix(from, "$") && from != ReconcileKey {
			report(strconv.Quote(from) + ", of the argument " + strconv.Quote(name) + ", is neither " + ReconcileKey + " nor a JSON Pointer nor a text")
		}
	}
}

// keyHeader: without a server that honours the key, a key header only invites
// layers below to repeat the call (net/http does so).
func (c *check) keyHeader(r *Rule, h *harmless) {
	s := &r.Settings
	name := s.Key.Header
	setting := fields[fieldKeyHeader].name
	switch {
	case name == "":
		return
	case s.Safety != "" && s.Safety != Keyed:
		c.report(setting, "only keyed tools have a key header")
	case s.Safety == "" && !h.reaches(r, true):
		c.report(setting, noneKeyed)
	}
	switch {
	case !isToken(name):
		c.report(setting, strconv.Quote(name)+" is not a header name")
	case isReserved(name):
		c.report(setting, strconv.Quote(name)+" already has a meaning of its own")
	}
}

// keyNames: names in _meta have an optional prefix, of which some are reserved (MCP
// 2026-07-28, basic protocol, _meta).
func (c *check) keyNames(k *Key) {
	prefix, _, slash := strings.Cut(k.Meta, "/")
	labels := strings.Split(prefix, ".")
	switch {
	case strings.ContainsAny(k.Meta, " \t\r\n"):
		c.report(fields[fieldKeyMeta].name, strconv.Quote(k.Meta)+" holds white space")
	case k.Meta == MetaAttempt, k.Meta == MetaTimeLeft:
		c.report(fields[fieldKeyMeta].name, strconv.Quote(k.Meta)+" already has a meaning of its own")
	case slash && len(labels) > 1 && (labels[1] == "mcp" || labels[1] == "modelcontextprotocol"):
		c.report(fields[fieldKeyMeta].name, strconv.Quote(k.Meta)+" has a prefix that MCP keeps for itself")
	}
	if strings.HasPrefix(k.Argument, "/") && strings.Contains(k.Argument+"/", "//") {
		c.report(fields[fieldKeyArgument].name, strconv.Quote(k.Argument)+" has an empty step")
	}
}

func (c *check) retry(r *Retry) {
	if b := r.Budget; !finite(b) || b > 0 && b < 1 {
		c.report(fields[fieldBudget].name, "neither 1 or more nor negative (no budget): it would not pay for a single repeat")
	}
	for i, name := range r.Outcomes {
		if problem := badOutcome(observe.Outcome(name)); problem != "" {
			c.reportItem(fields[fieldOutcomes].name, i, strconv.Quote(name)+" "+problem+didYouMean(name, formWords["outcome"]))
		}
	}
	for i, name := range r.Signals {
		if !Signal(name).Valid() {
			c.reportItem(fields[fieldSignals].name, i, strconv.Quote(name)+" is not a signal"+didYouMean(name, formWords["signal"]))
		}
	}
	c.statuses(fieldStatuses, r.Statuses)
	c.statuses(fieldRefusedStatuses, r.RefusedStatuses)
	if r.Throttled != nil && !*r.Throttled && slices.ContainsFunc(r.RefusedStatuses, throttling) {
		c.report(fields[fieldRefusedStatuses].name, "429 and 425 cannot be declared refused where retry.throttled is false")
	}
	for i, text := range r.ToolErrors {
		switch {
		case text == "":
			c.reportItem(fields[fieldToolErrors].name, i, "an empty text would match every error")
		case !utf8.ValidString(text):
			c.reportItem(fields[fieldToolErrors].name, i, "not valid UTF-8")
		}
	}
}

// endless: without any limit on time, repeats have no end that a caller could wait
// for. A limit on each attempt bounds the call as well, as long as the waits are bound.
// One that progress extends bounds nothing.
func (c *check) endless(s *Settings) {
	unbound := s.Limits.Attempt <= 0 || s.Retry.RetryAfterCap < 0 || s.Retry.BackoffCap < 0
	if s.Limits.Call < 0 && s.Retry.Repeats >= 0 && unbound {
		c.report(fields[fieldCall].name, "repeats without a deadline: bound the call, or each attempt and the waits between, or turn retry.repeats off as well")
	}
	if s.Limits.Call < 0 && s.Limits.Extended() {
		c.report(fields[fieldProgress].name, "progress extends an attempt that nothing else bounds: bound the call as well")
	}
}

func badOutcome(o observe.Outcome) string {
	switch {
	case o.Layer() == "":
		return "is not an outcome"
	case o == observe.SessionLost:
		return "is repeated once its session is renewed, never by a rule"
	case o == observe.Timeout, o == observe.ToolError, !o.Usable() && o.Layer() != observe.LayerLocal:
		return ""
	}
	return "is never repeated"
}

func (c *check) statuses(f field, statuses []int) {
	for i, s := range statuses {
		if s < 300 || s > 999 {
			c.reportItem(fields[f].name, i, strconv.Itoa(s)+" is not the status of an HTTP error")
		}
	}
}

// unsafe: what is repeated for harmless tools only has no effect on an unsafe one,
// and whoever wrote it expects one.
func (c *check) unsafe(r *Rule, h *harmless) {
	s := &r.Settings
	var problem string
	switch {
	case s.Safety == Unsafe:
		problem = "an unsafe tool is never repeated for this"
	case s.Safety == "" && !h.reaches(r, false):
		problem = noneHarmless
	default:
		return
	}
	for _, of := range []struct {
		field field
		n     int
	}{
		{fieldCodes, len(s.Retry.Codes)},
		{fieldStatuses, len(s.Retry.Statuses)},
		{fieldOutcomes, len(s.Retry.Outcomes)},
		{fieldToolErrors, len(s.Retry.ToolErrors)},
	} {
		if of.n > 0 {
			c.report(fields[of.field].name, problem)
		}
	}
}

// session: a session is lost to all tools of a server, so that a rule for some of them
// has no say in it.
func (c *check) session(r *Rule) {
	if r.Tool == "" || r.Tool == "*" {
		return
	}
	const problem = "a session belongs to a server: only a rule without a tool can set this"
	if r.Session.Heal != nil {
		c.report(fields[fieldHeal].name, problem)
	}
	if r.Session.Timeout != 0 {
		c.report(fields[fieldHealTimeout].name, problem)
	}
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// isToken reports whether s is a field name (RFC 9110, section 5.1).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// isReserved reports whether HTTP, MCP or the SDK gives the header a value.
func isReserved(name string) bool {
	switch name = http.CanonicalHeaderKey(name); name {
	case "Accept", "Accept-Encoding", "Authorization", "Connection", "Content-Encoding", "Content-Length",
		"Content-Type", "Cookie", "Expect", "Host", "Last-Event-Id", "Origin", "Proxy-Authorization",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent":
		return true
	}
	return strings.HasPrefix(name, "Mcp-")
}
