package policy

import (
	"reflect"
	"strconv"
	"strings"
	"time"
)

// An Explanation is what a policy comes to for one tool: every setting with the place
// that it comes from, and what is done after every end that an attempt can have.
// [Explanation.String] is the text for people.
type Explanation struct {
	Server, Tool string
	Settings     []ExplainedSetting  // in the order of [Fields]
	Decisions    []ExplainedDecision // in the order of the table in docs/policy.md
}

// An ExplainedSetting is a setting in force.
type ExplainedSetting struct {
	// Name is one of [Fields].
	Name string
	// Value is written as in a file; what is not set, or does not apply, is "none".
	Value string
	// Source is what [Tool.Source] says: the name of a rule, "default", or
	// "annotations".
	Source string
	// Place is "file:line" where the source is a rule that was read from a file.
	Place string
}

// An ExplainedDecision is what is done after some ends of an attempt that are all
// treated alike, as [Tool.Decide] says for a first attempt with time and budget left.
type ExplainedDecision struct {
	// When names outcomes, with their statuses or codes; Delivery is what is known of
	// execution then.
	When     string
	Delivery string
	// Decision has the longest wait that the backoff can give.
	Decision Decision
	// Once says that the call is repeated only once for this.
	Once bool
	// Setting is the setting that decides, or empty; Place is where it stands.
	Setting, Place string
}

// Explain says what the policy comes to for a tool of a server. The annotations are
// the server's own, or nil; p may be nil.
func (p *Policy) Explain(server, tool string, a *Annotations) *Explanation {
	t := p.Resolve(server, tool, a)
	e := &Explanation{Server: server, Tool: tool}
	for f := range fields[fieldNone+1:] {
		f := field(f + 1)
		e.Settings = append(e.Settings, ExplainedSetting{
			Name: fields[f].name, Value: t.written(f), Source: t.source(f), Place: p.place(t.source(f), f),
		})
	}
	for _, d := range t.decisions() {
		if d.from != fieldNone {
			d.Setting, d.Place = fields[d.from].name, p.place(d.Decision.Rule, d.from)
		}
		e.Decisions = append(e.Decisions, d.ExplainedDecision)
	}
	return e
}

// place is where the rule with this label sets the field.
func (p *Policy) place(label string, f field) string {
	if p == nil || label == sourceDefault || label == sourceAnnotations {
		return ""
	}
	for i := range p.Rules {
		if r := &p.Rules[i]; r.label(i) == label {
			return r.origin.place(f)
		}
	}
	return ""
}

// none is how a value is shown that is not set.
const none = "none"

// written is the effective value of a setting as it stands in a file.
func (t *Tool) written(f field) string {
	m := shape().find(fields[f].name)
	return show(m, t.at(m))
}

// at is the value of a setting in a Tool, which has the same names as [Settings];
// what is about reading stands in a struct of its own.
func (t *Tool) at(m *member) reflect.Value {
	v := reflect.ValueOf(t).Elem()
	g := shape()
	goType := reflect.TypeFor[Settings]()
	for name := range strings.SplitSeq(m.path, ".") {
		in := g.byName[name]
		goName := goType.Field(in.index).Name
		next := v.FieldByName(goName)
		if !next.IsValid() {
			next = reflect.ValueOf(t.Reading).FieldByName(goName)
		}
		v, g, goType = next, in.group, indirect(goType.Field(in.index).Type)
	}
	return v
}

func show(m *member, v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() && v.Type().Elem().Kind() == reflect.Bool {
			return strconv.FormatBool(false)
		}
		if v.IsNil() {
			return none
		}
		return show(m, v.Elem())
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.String:
		return showText(m, v.String())
	case reflect.Slice:
		return showList(m, v)
	case reflect.Struct, reflect.Map:
		return showWhole(m, v)
	}
	switch {
	case !v.IsZero():
		return amountNode(m, v).Value
	case m.off != "":
		return offWord
	}
	return none
}

func showText(m *member, s string) string {
	switch {
	case s == "" && m.unset != "":
		return m.unset
	case s == "":
		return none
	}
	return s
}

func showList(m *member, v reflect.Value) string {
	if v.Len() == 0 {
		return none
	}
	items := make([]string, v.Len())
	for i := range items {
		switch e := v.Index(i); {
		case e.CanInt():
			items[i] = strconv.FormatInt(e.Int(), 10)
		case m.form != "": // words, which need no quotes
			items[i] = e.String()
		default:
			items[i] = strconv.Quote(e.String())
		}
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// showWhole is a setting that is a struct or a map, in one line.
func showWhole(m *member, v reflect.Value) string {
	if v.IsZero() {
		return none
	}
	return flow(written(m, v))
}

// longestWait is the wait before the first repeat where all the jitter is taken.
func longestWait(d Decision) string {
	if d.Wait <= 0 {
		return "at once"
	}
	return "after at most " + writeDuration(d.Wait.Round(time.Microsecond))
}
