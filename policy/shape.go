package policy

import (
	"reflect"
	"strings"
	"sync"
	"unicode"
)

// A group is a mapping of the file, or a Go struct: the shape of the file is the
// shape of [Settings], with the names in snake case. What the types alone do not
// say stands in tags:
//
//	off:"no limit"   -1 turns the setting off, which means this; written "off"
//	form:"size"      written as a size or a rate; or one of a closed set of words
//	unset:"name"     what an empty text stands for
type group struct {
	members []*member // in the order of the struct
	byName  map[string]*member
}

// A member is one name of a group: a setting, a part of one, or a further group.
type member struct {
	name  string // "repeats"
	path  string // "retry.repeats"
	field field  // the setting, or fieldNone for a group of settings
	index int    // of the field in its struct
	off   string
	form  string
	unset string
	group *group // for structs
}

// shape is that of [Settings].
var shape = sync.OnceValue(func() *group {
	byName := make(map[string]field, fieldCount)
	for f := range fields[fieldNone+1:] {
		byName[fields[f+1].name] = field(f + 1)
	}
	return shapeOf(reflect.TypeFor[Settings](), "", fieldNone, byName)
})

// shapeOf describes a struct. A struct that is a setting by itself is taken whole:
// its members belong to that setting.
func shapeOf(t reflect.Type, prefix string, whole field, byName map[string]field) *group {
	g := &group{byName: make(map[string]*member)}
	for i := range t.NumField() {
		f := t.Field(i)
		m := &member{
			name: snake(f.Name), index: i, field: whole,
			off: f.Tag.Get("off"), form: f.Tag.Get("form"), unset: f.Tag.Get("unset"),
		}
		m.path = prefix + m.name
		if whole == fieldNone {
			m.field = byName[m.path]
		}
		if inner := indirect(f.Type); inner.Kind() == reflect.Struct {
			m.group = shapeOf(inner, m.path+".", m.field, byName)
		}
		g.members = append(g.members, m)
		g.byName[m.name] = m
	}
	return g
}

func indirect(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// snake turns RetryAfterCap into retry_after_cap.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// find returns the member with this path, or nil.
func (g *group) find(path string) *member {
	for {
		name, rest, more := strings.Cut(path, ".")
		m := g.byName[name]
		if m == nil || !more {
			return m
		}
		if g = m.group; g == nil {
			return nil
		}
		path = rest
	}
}
