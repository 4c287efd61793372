package policy

import "reflect"

// SettingAt is the Go field of the setting with this name, for tests that walk all of
// them.
func SettingAt(s *Settings, name string) reflect.Value { return s.at(name) }

// A Member is what a file holds under one name: a setting, a part of one, or a group.
type Member struct {
	Path      string
	Field     string // the setting's name; empty for a group
	Type      reflect.Type
	Off, Form string
	Members   []Member
}

// Shape is what tests know of a file.
func Shape() []Member { return membersOf(shape(), reflect.TypeFor[Settings]()) }

func membersOf(g *group, t reflect.Type) []Member {
	var all []Member
	for _, m := range g.members {
		inner := t.Field(m.index).Type
		out := Member{Path: m.path, Field: fields[m.field].name, Type: inner, Off: m.off, Form: m.form}
		if m.group != nil {
			out.Members = membersOf(m.group, indirect(inner))
		}
		all = append(all, out)
	}
	return all
}

// Words is the closed set of a type or of a form, or nil.
func Words(t reflect.Type, form string) []string {
	if w := words[t]; w != nil {
		return w
	}
	return formWords[form]
}

const LargestFile = largestFile

func Overlap(a, b string) bool { return new(harmless).overlap(a, b) }
