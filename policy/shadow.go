package policy

import (
	"slices"
	"strings"
)

// A cover knows the rules so far, and which of them match everything that a further
// rule matches, so that it can never decide what they set.
//
// It finds an earlier glob that is the same, or that is the beginning of this one with
// a * at its end, matching everything included. It does not see that *_x covers a_x,
// nor that several rules together leave nothing for another. And it gives up after
// mostLookups, which no ordinary file comes near.
type cover struct {
	byTool  index[*index[[]setBy]] // and in it by server
	lookups int
	scratch Tool // only takes what rules set, to see whether they do
}

const mostLookups = 5_000_000

// setBy is a setting with the first rule that sets it, counted from 1.
type setBy struct {
	field field
	rule  int
}

// An index finds what was kept for the globs that match all that another matches.
type index[T any] struct {
	kept  map[glob]T
	stars []int // the lengths, in order, of the texts that anything can follow
}

// A glob is a text, which may hold wildcards, and whether anything can follow it.
type glob struct {
	text string
	star bool
}

func globOf(pattern string) glob {
	if pattern == "" {
		return glob{star: true}
	}
	head, star := strings.CutSuffix(pattern, "*")
	return glob{head, star}
}

func (x *index[T]) keep(g glob, v T) {
	if x.kept == nil {
		x.kept = make(map[glob]T)
	}
	x.kept[g] = v
	if i, found := slices.BinarySearch(x.stars, len(g.text)); g.star && !found {
		x.stars = slices.Insert(x.stars, i, len(g.text))
	}
}

// around visits what was kept for the globs that match all that g matches.
func (x *index[T]) around(g glob, visit func(T), lookups *int) {
	at := func(g glob) {
		*lookups++
		if v, found := x.kept[g]; found && *lookups < mostLookups {
			visit(v)
		}
	}
	if !g.star {
		at(g)
	}
	for _, n := range x.stars {
		if n > len(g.text) || *lookups > mostLookups {
			return
		}
		at(glob{g.text[:n], true})
	}
}

// add notes what a rule is the first to set. For each of its settings it returns the
// first rule before it that sets it for all the same tools, or 0.
func (c *cover) add(r *Rule, i int) []setBy {
	set := make([]setBy, 0, 8)
	for f := range fields {
		if fields[f].take(&c.scratch, &r.Settings) {
			set = append(set, setBy{field: field(f)})
		}
	}
	tool, server := globOf(r.Tool), globOf(r.Server)
	c.byTool.around(tool, func(byServer *index[[]setBy]) {
		byServer.around(server, func(earlier []setBy) { note(set, earlier) }, &c.lookups)
	}, &c.lookups)
	c.keep(tool, server, set, i+1)
	return set
}

func note(set, earlier []setBy) {
	for _, e := range earlier {
		for i := range set {
			if s := &set[i]; s.field == e.field && (s.rule == 0 || e.rule < s.rule) {
				s.rule = e.rule
			}
		}
	}
}

// keep remembers what no earlier rule sets for all the same tools; the rest is there
// already, for the same or a wider glob.
func (c *cover) keep(tool, server glob, set []setBy, rule int) {
	first := make([]setBy, 0, len(set))
	for _, s := range set {
		if s.rule == 0 {
			first = append(first, setBy{s.field, rule})
		}
	}
	byServer := c.byTool.kept[tool]
	if byServer == nil {
		byServer = new(index[[]setBy])
		c.byTool.keep(tool, byServer)
	}
	byServer.keep(server, append(first, byServer.kept[server]...))
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
