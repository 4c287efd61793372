package policy

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// isPlain reports what is YAML but no part of the format. References could make a
// small file a large policy, and tags could make a value another.
func (r *reader) isPlain(n *yaml.Node, path string) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		r.at(n, path, "*"+short(n.Value)+" refers to another part of the file: write that part out"+globAdvice)
	case n.Anchor != "":
		r.at(n, path, "a reference, which a policy cannot have: take &"+short(n.Anchor)+" away")
	case n.Style&yaml.TaggedStyle != 0:
		r.at(n, path, "a tag, which a policy cannot have: take "+short(n.Tag)+" away")
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		r.at(n, path, "there is no value: write one, or take the name away")
	default:
		return true
	}
	return false
}

// pairs visits the names and values of a mapping, and reports what is no mapping, no
// name, or there twice.
func (r *reader) pairs(n *yaml.Node, path, advice string, visit func(key, value *yaml.Node)) {
	if !r.isPlain(n, path) {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.at(n, path, "not names with values: "+advice)
		return
	}
	var seen seenNames
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch line, twice := seen.add(key); {
		case key.Kind != yaml.ScalarNode || key.Anchor != "" || key.Style&yaml.TaggedStyle != 0:
			r.at(key, path, "a name is a single word")
			continue
		case twice:
			r.at(key, path, short(key.Value)+" is there already, on line "+strconv.Itoa(line)+": keep one of them")
			continue
		}
		visit(key, value)
	}
}

// seenNames are those of one mapping so far. A map is only made for mappings that are
// longer than those of a policy.
type seenNames struct {
	few  []*yaml.Node
	many map[string]*yaml.Node
}

// add returns the line of the same name, if there is one already.
func (s *seenNames) add(key *yaml.Node) (line int, twice bool) {
	if s.many != nil {
		earlier := s.many[key.Value]
		if earlier != nil {
			return earlier.Line, true
		}
		s.many[key.Value] = key
		return 0, false
	}
	for _, earlier := range s.few {
		if earlier.Value == key.Value {
			return earlier.Line, true
		}
	}
	if s.few = append(s.few, key); len(s.few) > 32 {
		s.many = make(map[string]*yaml.Node)
		for _, k := range s.few {
			s.many[k.Value] = k
		}
	}
	return 0, false
}

// setting reads one name of a group of settings, and what stands below it.
func (r *reader) setting(key, value *yaml.Node, g *group, prefix string, s *Settings, at *ruleNodes) {
	m := g.byName[key.Value]
	switch {
	case m == nil:
		r.at(key, strings.TrimSuffix(prefix, "."), unknownSetting(key.Value, g, prefix))
	case m.field != fieldNone:
		at.values = append(at.values, placed{m.path, m.field, value})
		r.value(value, m, s.at(m.path))
	case value.Kind == yaml.MappingNode && len(value.Content) == 0:
		r.at(value, m.path, "there is nothing below it: write what is set, or take the name away")
	default:
		r.pairs(value, m.path, "write what is set below it, such as "+m.group.members[0].name, func(k, v *yaml.Node) {
			r.setting(k, v, m.group, m.path+".", s, at)
		})
	}
}

// at is the Go field of a setting.
func (s *Settings) at(path string) reflect.Value {
	v, g := reflect.ValueOf(s).Elem(), shape()
	for {
		name, rest, more := strings.Cut(path, ".")
		m := g.byName[name]
		v = v.Field(m.index)
		if !more {
			return v
		}
		g, path = m.group, rest
	}
}

// value reads what a Go value of this type is written as.
func (r *reader) value(n *yaml.Node, m *member, v reflect.Value) {
	if !r.isPlain(n, m.path) {
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct:
		r.whole(n, m, v)
	case reflect.Slice:
		r.values(n, m, v)
	case reflect.Map:
		r.table(n, m, v)
	default:
		r.scalar(n, m, v)
	}
}

// whole reads a setting that is a struct.
func (r *reader) whole(n *yaml.Node, m *member, v reflect.Value) {
	r.pairs(n, m.path, "write what is set below it, such as "+m.group.members[0].name, func(key, value *yaml.Node) {
		inner := m.group.byName[key.Value]
		if inner == nil {
			r.at(key, m.path, unknownSetting(key.Value, m.group, m.path+"."))
			return
		}
		r.value(value, inner, v.Field(inner.index))
	})
}

func (r *reader) values(n *yaml.Node, m *member, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		r.at(n, m.path, "not a list: write it in brackets, such as [one, two]; [] is none")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		if !r.isPlain(item, m.path) {
			continue
		}
		switch e := v.Index(i); e.Kind() {
		case reflect.Int, reflect.Int64: // any number, not one that could be off
			if c, ok := readCount(item.Value); r.isScalar(item, m.path, wantCount) && r.is(ok, item, m.path, wantCount) {
				e.SetInt(c)
			}
		default:
			r.value(item, m, e)
		}
	}
}

func (r *reader) table(n *yaml.Node, m *member, v reflect.Value) {
	v.Set(reflect.MakeMap(v.Type()))
	r.pairs(n, m.path, "write a name and a value, such as order: id", func(key, value *yaml.Node) {
		e := reflect.New(v.Type().Elem()).Elem()
		r.value(value, m, e)
		v.SetMapIndex(reflect.ValueOf(key.Value).Convert(v.Type().Key()), e)
	})
}

func (r *reader) scalar(n *yaml.Node, m *member, v reflect.Value) {
	switch {
	case v.Kind() == reflect.String:
		if r.isText(n, m.path) {
			v.SetString(n.Value)
		}
	case v.Kind() == reflect.Bool:
		if b, ok := readBool(n.Value); r.isScalar(n, m.path, wantBool) && r.is(ok, n, m.path, wantBool) {
			v.SetBool(b)
		}
	case v.Type() == reflect.TypeFor[time.Duration]():
		if d, ok := amount(r, n, m, wantDuration, readDuration); ok {
			v.SetInt(int64(d))
		}
	case m.form == "rate":
		if f, ok := amount(r, n, m, wantRate, readRate); ok {
			v.SetFloat(f)
		}
	case m.form == "size":
		if i, ok := amount(r, n, m, wantSize, readSize); ok {
			v.SetInt(i)
		}
	case v.CanInt():
		if i, ok := amount(r, n, m, wantCount, readCount); ok && r.is(!v.OverflowInt(i), n, m.path, wantCount) {
			v.SetInt(i)
		}
	case v.CanFloat():
		if f, ok := amount(r, n, m, wantNumber, readNumber); ok {
			v.SetFloat(f)
		}
	}
}

// amount reads a value above zero, or off.
func amount[T int64 | float64 | time.Duration](r *reader, n *yaml.Node, m *member, want string, read func(string) (T, bool)) (T, bool) {
	if !r.isScalar(n, m.path, want) {
		return 0, false
	}
	if n.Value == offWord && m.off != "" {
		return off, true
	}
	v, ok := read(n.Value)
	switch {
	case !ok:
		r.at(n, m.path, strconv.Quote(short(n.Value))+" is not "+want+orOff(m))
	case v <= 0 && m.off != "":
		r.at(n, m.path, short(n.Value)+" is not above zero: write off, which is "+m.off+", or take the line away for the default")
	case v <= 0:
		r.at(n, m.path, short(n.Value)+" is not above zero: write "+want)
	default:
		return v, true
	}
	return 0, false
}

func orOff(m *member) string {
	if m.off == "" {
		return ""
	}
	return ", nor off, which is " + m.off
}

func (r *reader) is(ok bool, n *yaml.Node, path, want string) bool {
	if !ok {
		r.at(n, path, strconv.Quote(short(n.Value))+" is not "+want)
	}
	return ok
}

func (r *reader) isScalar(n *yaml.Node, path, want string) bool {
	if n.Kind != yaml.ScalarNode {
		r.at(n, path, "write "+want)
		return false
	}
	return true
}

func (r *reader) isText(n *yaml.Node, path string) bool {
	switch {
	case n.Kind != yaml.ScalarNode:
		r.at(n, path, "write a text")
	case n.Tag != "!!str":
		r.at(n, path, short(n.Value)+" is not a text: write it in quotes")
	case n.Value == "":
		r.at(n, path, "an empty text sets nothing: take the name away")
	default:
		return true
	}
	return false
}

func unknownName(name string, known []string) string {
	return strconv.Quote(short(name)) + " is not a name of the format" + cmp.Or(didYouMean(name, known), ": there are "+strings.Join(known, ", "))
}

// unknownSetting looks for the name in the same group, and then where else it stands.
func unknownSetting(name string, g *group, prefix string) string {
	var here []string
	for _, m := range g.members {
		here = append(here, m.name)
	}
	if prefix == "" {
		here = append([]string{"name", "server", "tool"}, here...)
	}
	problem := strconv.Quote(short(name)) + " is not a setting"
	if hint := didYouMean(name, here); hint != "" {
		return problem + hint
	}
	if i := slices.IndexFunc(fields[:], func(f setting) bool { return f.name == name || strings.HasSuffix(f.name, "."+name) }); i > 0 {
		outer, inner, _ := strings.Cut(fields[i].name, ".")
		return problem + " of this place: write " + outer + ": and below it " + inner + ":"
	}
	if hint := didYouMean(name, Fields()); hint != "" {
		return problem + hint
	}
	return problem + ": there are " + strings.Join(here, ", ")
}
