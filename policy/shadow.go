package policy

import (
	"iter"
	"slices"
	"strings"
)

// A cover knows the rules so far, and which of them match everything that a further
// rule matches, so that it can never decide what they set.
//
// It finds an earlier glob that is the same, or that is fixed text with one * at its
// end, matching everything included. It does not see that *_x covers a_x, nor that
// several rules together leave nothing for another.
type cover struct {
	tools, servers stars
	setBy          map[globs][]setBy
	scratch        Tool // only takes what rules set, to see whether they do
}

// setBy is a setting with the first rule that sets it, counted from 1.
type setBy struct {
	field field
	rule  int
}

type globs struct{ tool, server glob }

// A glob is a text, which may hold wildcards, or the text before a single * at the
// end.
type glob struct {
	text string
	star bool
}

func globOf(pattern string) glob {
	if pattern == "" {
		return glob{star: true}
	}
	if head, found := strings.CutSuffix(pattern, "*"); found && !strings.ContainsAny(head, "*?") {
		return glob{head, true}
	}
	return glob{text: pattern}
}

// fixed is what every name that the glob matches begins with.
func (g glob) fixed() string {
	if i := strings.IndexAny(g.text, "*?"); i >= 0 && !g.star {
		return g.text[:i]
	}
	return g.text
}

// stars are the lengths, in order, of the texts before a single * that were seen.
type stars []int

func (s *stars) add(g glob) {
	if !g.star {
		return
	}
	if i, found := slices.BinarySearch(*s, len(g.text)); !found {
		*s = slices.Insert(*s, i, len(g.text))
	}
}

// around are the globs that match all that g matches.
func (s stars) around(g glob) iter.Seq[glob] {
	return func(yield func(glob) bool) {
		if !g.star && !yield(g) {
			return
		}
		fixed := g.fixed()
		for _, n := range s {
			if n > len(fixed) || !yield(glob{fixed[:n], true}) {
				return
			}
		}
	}
}

// add notes what a rule is the first to set. For each of its settings it returns the
// first rule before it that sets it for all the same tools, or 0.
func (c *cover) add(r *Rule, i int) []setBy {
	var set []setBy
	for f := range fields {
		if fields[f].take(&c.scratch, &r.Settings) {
			set = append(set, setBy{field: field(f)})
		}
	}
	g := globs{globOf(r.Tool), globOf(r.Server)}
	for t := range c.tools.around(g.tool) {
		for s := range c.servers.around(g.server) {
			for _, earlier := range c.setBy[globs{t, s}] {
				note(set, earlier)
			}
		}
	}
	c.tools.add(g.tool)
	c.servers.add(g.server)
	c.note(g, set, i+1)
	return set
}

func note(set []setBy, earlier setBy) {
	for i := range set {
		if s := &set[i]; s.field == earlier.field && (s.rule == 0 || earlier.rule < s.rule) {
			s.rule = earlier.rule
		}
	}
}

// note keeps what no earlier rule sets for all the same tools; the rest is there
// already, with the same or a wider glob.
func (c *cover) note(g globs, set []setBy, rule int) {
	if c.setBy == nil {
		c.setBy = make(map[globs][]setBy)
	}
	for _, s := range set {
		if s.rule == 0 {
			c.setBy[g] = append(c.setBy[g], setBy{s.field, rule})
		}
	}
}

const setsNothing = "the rule sets nothing: let it set something, or take it away"

// counts: what can never decide anything is a mistake in the order of the rules, or
// in a glob.
func (c *check) counts(p *Policy, before *cover) {
	r := &p.Rules[c.index]
	set := before.add(r, c.index)
	open := slices.ContainsFunc(set, func(s setBy) bool { return s.rule == 0 })
	switch {
	case len(set) == 0 && len(c.found) > 0: // what is wrong may be what it meant to set
	case len(set) == 0:
		c.report("tool", setsNothing)
	case !open:
		c.report("tool", "the rule never counts: "+p.earlier(set[0].rule)+" matches the same tools and comes first; put this rule before it, or take it away")
	default:
		for _, s := range set {
			if s.rule > 0 {
				c.report(fields[s.field].name, "never counts: "+p.earlier(s.rule)+" sets it for the same tools and comes first")
			}
		}
	}
}

// earlier names a rule, counted from 1, and says where it stands.
func (p *Policy) earlier(n int) string {
	r := &p.Rules[n-1]
	name := ruleWhere(r.label(n - 1))
	if at := r.origin.place(fieldNone); at != "" {
		name += " (" + at + ")"
	}
	return name
}
