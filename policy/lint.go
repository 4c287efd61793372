package policy

import "slices"

// A ListedTool is a tool as a server lists it.
type ListedTool struct {
	Name        string
	Annotations *Annotations // nil is none
}

// A Warning is something about a policy and a server's tools that an operator may not
// have meant, though nothing is wrong with it.
type Warning struct {
	// Rule is the rule that matches none of the tools, or empty; Place is its
	// "file:line", where it comes from a file.
	Rule, Place string
	// Tool is the tool whose safety no rule sets, or empty.
	Tool string
	// Problem says so in words.
	Problem string
}

// String is the warning in one line.
func (w *Warning) String() string {
	if w.Tool != "" {
		return "tool " + w.Tool + ": " + w.Problem
	}
	if w.Place != "" {
		return w.Place + ": " + ruleWhere(w.Rule) + ": " + w.Problem
	}
	return ruleWhere(w.Rule) + ": " + w.Problem
}

// Lint compares a policy with the tools of a server. It warns about each rule that is
// for this server and for certain tools, and matches none of those; and about each
// tool whose safety falls to the default. What is wrong with the policy itself is
// the affair of [Policy.Validate].
func (p *Policy) Lint(server string, tools []ListedTool) []Warning {
	var found []Warning
	if p != nil {
		for i := range p.Rules {
			if r := &p.Rules[i]; r.idle(server, tools) {
				found = append(found, Warning{
					Rule: r.label(i), Place: r.origin.place(fieldNone),
					Problem: "matches none of the server's tools",
				})
			}
		}
	}
	for _, t := range tools {
		if p.Resolve(server, t.Name, t.Annotations).Rule == sourceDefault {
			found = append(found, Warning{Tool: t.Name, Problem: "no rule sets its safety, so it is unsafe"})
		}
	}
	return found
}

// idle reports whether the rule means some tools of the server and matches none.
func (r *Rule) idle(server string, tools []ListedTool) bool {
	if r.Tool == "" || r.Tool == "*" || !matches(r.Server, server) {
		return false
	}
	return !slices.ContainsFunc(tools, func(t ListedTool) bool { return matches(r.Tool, t.Name) })
}
