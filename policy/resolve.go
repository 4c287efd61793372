package policy

import "strconv"

// Annotations are a server's own hints about a tool. Nil, and the zero value,
// mean that the server gives none.
type Annotations struct {
	// ReadOnly is readOnlyHint.
	ReadOnly bool
	// Idempotent is idempotentHint.
	Idempotent bool
	// Keyed says that the server announces that it executes a call once for each key.
	Keyed bool
}

// Resolve returns the policy in force for a tool of a server. It never returns
// nil; p and a may be nil. What [Policy.Validate] would report is read in the
// cautious way: a misspelt safety is [Unsafe]. The tool shares the lists of the
// rules, so the policy must not be modified afterwards.
func (p *Policy) Resolve(server, tool string, a *Annotations) *Tool {
	t := p.resolve(server, func(r *Rule) bool { return matches(r.Tool, tool) })
	t.Name = tool
	if a != nil && t.TrustAnnotations && t.sources[fieldSafety] == "" {
		t.trust(*a)
	}
	t.settle()
	return t
}

// Reads returns the policy for the methods of a server that only read
// (tools/list, resources/read and the like). They are read-only whatever the
// rules say of tools, and take retry and limits from the rules for all tools,
// those whose tool glob is empty or "*". They have no breaker, no limiter and no
// budget, so that they neither spend nor trip what belongs to tools.
func (p *Policy) Reads(server string) *Tool {
	t := p.resolve(server, func(r *Rule) bool { return r.Tool == "" || r.Tool == "*" })
	t.Safety, t.Rule = ReadOnly, sourceDefault
	t.Retry.Budget = 0
	t.Breaker = Breaker{}
	t.Limiter = EffectiveLimiter{}
	t.Surface = SurfaceCaller
	t.settle()
	return t
}

// resolve applies the rules for the server that want the tool, first come first
// served.
func (p *Policy) resolve(server string, wanted func(*Rule) bool) *Tool {
	t := new(Defaults())
	t.Server = server
	if p == nil {
		return t
	}
	for i := range p.Rules {
		r := &p.Rules[i]
		if matches(r.Server, server) && wanted(r) {
			t.take(r, i)
		}
	}
	if rule := t.sources[fieldSafety]; rule != "" {
		t.Rule = rule
	}
	return t
}

// take sets what the rule sets and no rule before it has set.
func (t *Tool) take(r *Rule, i int) {
	name := r.Name
	for f := range fields {
		if t.sources[f] != "" || !fields[f].take(t, &r.Settings) {
			continue
		}
		if name == "" {
			name = r.label(i)
		}
		t.sources[f] = name
	}
}

// trust raises a safety that no rule has set.
func (t *Tool) trust(a Annotations) {
	switch {
	case a.ReadOnly:
		t.Safety = ReadOnly
	case a.Idempotent:
		t.Safety = Idempotent
	case a.Keyed:
		t.Safety = Keyed
	default:
		return
	}
	t.Rule = sourceAnnotations
}

// settle brings settings that depend on each other into line.
func (t *Tool) settle() {
	if t.Breaker.Failures == 0 || t.Breaker.Open == 0 {
		t.Breaker = Breaker{}
	}
	if t.Limiter.Rate == 0 {
		t.Limiter = EffectiveLimiter{}
	} else if t.Limiter.Burst == 0 {
		t.Limiter.Burst = defaultBurst
	}
	if t.Safety != Keyed {
		t.Key.Header = ""
	}
}

// label is what people call the rule with this index.
func (r *Rule) label(i int) string {
	if r.Name != "" {
		return r.Name
	}
	return "rules[" + strconv.Itoa(i) + "]"
}

func matches(pattern, name string) bool { return pattern == "" || Match(pattern, name) }
