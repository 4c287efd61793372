package policy

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// fileVersion is the one version of the format there is.
	fileVersion = "1"
	// largestFile bounds a file, in bytes: the tree of a file takes up to two hundred
	// times its size. Ten thousand rules with ten lines each take half of it.
	largestFile = 4 << 20
	// mostProblems bounds what is reported of one file.
	mostProblems = 1000
	// sourceDefaults is the name of the rule that stands under defaults in a file.
	sourceDefaults = "defaults"
)

// A FileError is one thing that is wrong with a policy file.
type FileError struct {
	// File is the name that was given; Line and Column count from 1, columns in
	// characters.
	File         string
	Line, Column int
	// Where is the part of the file in words; empty is the file as a whole.
	Where string
	// Problem says what is wrong and what to do about it.
	Problem string
}

// Error is "file:line:column: where: problem".
func (e *FileError) Error() string {
	where := e.Where
	if where != "" {
		where += ": "
	}
	return fmt.Sprintf("%s:%d:%d: %s%s", e.File, e.Line, e.Column, where, e.Problem)
}

// Load reads a policy from a file; see [Parse].
func Load(path string) (*Policy, error) {
	data, err := Read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Read returns the text of a file for [Parse], and of one that is too large no more than
// shows that.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := readAll(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, nil
}

// Parse reads a policy from the text of a file, in YAML or JSON; docs/policy.md has
// the format. The name is what errors and [Policy.Explain] call the file. An empty
// file is an empty policy, which has the defaults.
//
// Reading is strict: nothing is guessed or ignored, and what [Policy.Validate]
// reports is wrong here, too. Everything that is wrong is reported at once: the
// error's Unwrap() []error gives a [*FileError] for each problem, in the order of
// the file, the first thousand of them. (Of what is not YAML only the first place is
// known.) References (& and *), tags (!) and further documents are no part of the
// format, and a file has at most 4 MiB, so that memory stays bounded. The defaults of
// the file become the last rule, with the name "defaults".
func Parse(name string, data []byte) (*Policy, error) {
	r := &reader{file: name}
	p := r.policy(data)
	if len(r.problems) > 0 {
		return nil, r.err()
	}
	return p, nil
}

// A reader turns the tree of a file into a policy and collects what is wrong.
type reader struct {
	file     string
	where    string // in words
	problems []*FileError
	rules    []ruleNodes
}

// ruleNodes remember where a rule and its values stand.
type ruleNodes struct {
	rule   *yaml.Node
	values []placed
	broken bool // something in it could not be read
}

type placed struct {
	path  string // "name", "server", "tool" or that of a setting
	field field
	node  *yaml.Node
}

// at reports a problem at a place. A place is the value's, or where it is missing its
// name's.
func (r *reader) at(n *yaml.Node, path, problem string) {
	if len(r.problems) >= mostProblems {
		return
	}
	where := r.where
	if path != "" && where != "" {
		where += ": "
	}
	r.problems = append(r.problems, &FileError{
		File: r.file, Line: max(n.Line, 1), Column: max(n.Column, 1), Where: where + path, Problem: problem,
	})
}

func (r *reader) err() error {
	slices.SortStableFunc(r.problems, func(a, b *FileError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	all := make([]error, len(r.problems))
	for i, p := range r.problems {
		all[i] = p
	}
	return errors.Join(all...)
}

// policy reads the outermost mapping, and then asks what [Policy.Validate] has to
// say.
func (r *reader) policy(data []byte) *Policy {
	p := &Policy{}
	root := r.tree(data)
	if root == nil {
		return p
	}
	var version, defaults, rules *yaml.Node
	r.pairs(root, "", "begin with the line version: 1", func(key, value *yaml.Node) {
		switch key.Value {
		case "version":
			version = value
		case "defaults":
			defaults = value
		case "rules":
			rules = value
		default:
			r.at(key, "", unknownName(key.Value, []string{"version", "defaults", "rules"}))
		}
	})
	r.version(root, version)
	if rules != nil {
		p.Rules = r.list(rules)
	}
	if defaults != nil {
		p.Rules = append(p.Rules, r.defaults(defaults))
	}
	for _, e := range p.problems() {
		r.invalid(e)
	}
	return p
}

func (r *reader) version(root, n *yaml.Node) {
	switch {
	case root.Kind != yaml.MappingNode:
	case n == nil:
		r.at(root, "", "the version is missing: begin with the line version: 1")
	case r.isPlain(n, "version") && (n.Kind != yaml.ScalarNode || n.Tag != "!!int" || n.Value != fileVersion):
		r.at(n, "version", "this program reads version 1 only: write version: 1")
	}
}

// list reads the rules.
func (r *reader) list(n *yaml.Node) []Rule {
	if !r.isPlain(n, "rules") {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		r.at(n, "rules", "not a list: each rule begins with a dash, - tool: get_*")
		return nil
	}
	rules := make([]Rule, len(n.Content))
	r.rules = make([]ruleNodes, len(n.Content), len(n.Content)+1)
	for i, item := range n.Content {
		r.rule(&rules[i], i, item)
	}
	return rules
}

func (r *reader) rule(rule *Rule, i int, n *yaml.Node) {
	r.where = ruleWhere(rule.label(i))
	at, before := &r.rules[i], len(r.problems)
	at.rule = n
	at.values = make([]placed, 0, len(n.Content)/2)
	r.pairs(n, "", "a rule is written as tool: get_*, and below it what it sets", func(key, value *yaml.Node) {
		var text *string
		switch key.Value {
		case "name":
			text = &rule.Name
		case "server":
			text = &rule.Server
		case "tool":
			text = &rule.Tool
		default:
			r.setting(key, value, shape(), "", &rule.Settings, at)
			return
		}
		if r.isPlain(value, key.Value) && r.isText(value, key.Value) {
			*text = value.Value
			at.values = append(at.values, placed{path: key.Value, node: value})
			if key.Value == "name" {
				r.where = ruleWhere(rule.label(i))
			}
		}
	})
	rule.origin = r.origin(n, at)
	at.broken = len(r.problems) > before
	r.where = ""
}

func (r *reader) defaults(n *yaml.Node) Rule {
	rule := Rule{Name: sourceDefaults}
	r.where = sourceDefaults
	r.rules = append(r.rules, ruleNodes{rule: n})
	at, before := &r.rules[len(r.rules)-1], len(r.problems)
	r.pairs(n, "", "write what is set, such as retry: {repeats: 1}", func(key, value *yaml.Node) {
		switch key.Value {
		case "name", "server", "tool":
			r.at(key, "", key.Value+" is for rules: the defaults are for every tool of every server")
		default:
			r.setting(key, value, shape(), "", &rule.Settings, at)
		}
	})
	rule.origin = r.origin(n, at)
	at.broken = len(r.problems) > before
	r.where = ""
	return rule
}

func ruleWhere(label string) string { return "rule " + strconv.Quote(short(label)) }

// short bounds what is quoted of a file, of which a problem may quote the same part a
// thousand times.
func short(s string) string {
	const longest = 120
	if len(s) <= longest {
		return s
	}
	return strings.ToValidUTF8(s[:longest], "") + "…"
}

// invalid places what Validate reports.
func (r *reader) invalid(e *RuleError) {
	at := r.rules[e.Index]
	switch e.Problem {
	case setsNothing:
		if at.broken {
			return
		}
	case noneHarmless, noneKeyed: // as far as the rules could be read
		if slices.ContainsFunc(r.rules, func(n ruleNodes) bool { return n.broken }) {
			return
		}
	}
	n := at.rule
	for _, v := range at.values {
		if v.path == e.Setting || strings.HasPrefix(e.Setting, v.path+".") {
			n = v.node
		}
	}
	if n.Kind == yaml.SequenceNode && e.item > 0 && e.item <= len(n.Content) {
		n = n.Content[e.item-1]
	}
	r.where = ruleWhere(e.Rule)
	if e.Rule == sourceDefaults {
		r.where = sourceDefaults
	}
	r.at(n, e.Setting, e.Problem)
	r.where = ""
}

// An origin says where in a file a rule stands.
type origin struct {
	file     string
	line     int
	settings []settingLine
}

type settingLine struct {
	field field
	line  int
}

func (r *reader) origin(n *yaml.Node, at *ruleNodes) *origin {
	o := &origin{file: r.file, line: n.Line, settings: make([]settingLine, 0, len(at.values))}
	for _, v := range at.values {
		if v.field != fieldNone {
			o.settings = append(o.settings, settingLine{v.field, v.node.Line})
		}
	}
	return o
}

// place is "file:line" of a setting, or of the rule where the setting is fieldNone;
// empty where the rule comes from no file.
func (o *origin) place(f field) string {
	if o == nil {
		return ""
	}
	line := o.line
	for _, s := range o.settings {
		if s.field == f {
			line = s.line
		}
	}
	return o.file + ":" + strconv.Itoa(line)
}
