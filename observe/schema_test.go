package observe_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/surecall/surecall/observe"
)

func recordSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	s := new(jsonschema.Schema)
	if err := json.Unmarshal([]byte(observe.RecordJSONSchema()), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSchemaIsInStep: the schema has the members of the Go types, in their order of
// need: what is always there is required.
func TestSchemaIsInStep(t *testing.T) {
	root := recordSchema(t)
	seen := map[string]bool{}
	checkMembers(t, "record", root, root, reflect.TypeFor[observe.Record](), seen)
	for name, def := range root.Defs {
		if def.Type == "object" && !seen[name] {
			t.Errorf("$defs/%s describes nothing", name)
		}
	}
}

// checkMembers compares a schema with a struct, and then what its members lead to.
func checkMembers(t *testing.T, name string, root, s *jsonschema.Schema, typ reflect.Type, seen map[string]bool) {
	t.Helper()
	seen[name] = true
	var members, required []string
	for i := range typ.NumField() {
		f := typ.Field(i)
		tag, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		members = append(members, tag)
		if opts == "" {
			required = append(required, tag)
		}
		p := s.Properties[tag]
		if p == nil {
			continue
		}
		if def, to := definition(p), structOf(f.Type); to != nil && !seen[def] {
			checkMembers(t, def, root, root.Defs[def], to, seen)
		} else if to != nil && def == "" {
			t.Errorf("%s.%s leads nowhere", name, tag)
		}
	}
	have := slices.Collect(mapKeys(s.Properties))
	slices.Sort(have)
	slices.Sort(members)
	if !slices.Equal(have, members) {
		t.Errorf("%s: the schema has %q, the type %q", name, have, members)
	}
	slices.Sort(required)
	slices.Sort(s.Required)
	if !slices.Equal(s.Required, required) {
		t.Errorf("%s: the schema requires %q, the type always has %q", name, s.Required, required)
	}
}

func mapKeys(m map[string]*jsonschema.Schema) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// definition is the name of the definition that a property leads to, or "".
func definition(p *jsonschema.Schema) string {
	for p.Items != nil {
		p = p.Items
	}
	for _, alternative := range append(p.AnyOf, p) {
		if name, ok := strings.CutPrefix(alternative.Ref, "#/$defs/"); ok {
			return name
		}
	}
	return ""
}

// structOf is the struct of this package that a type holds, or nil.
func structOf(typ reflect.Type) reflect.Type {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[time.Time]() {
		return nil
	}
	return typ
}

func TestSchemaKnowsEveryWord(t *testing.T) {
	defs := recordSchema(t).Defs
	for name, want := range map[string][]string{
		"outcome": texts(observe.Outcomes()), "deviation": texts(observe.Deviations()),
		"layer":    texts([]observe.Layer{observe.LayerApplication, observe.LayerInteraction, observe.LayerProtocol, observe.LayerTransport, observe.LayerLocal}),
		"delivery": texts([]observe.Delivery{observe.NotSent, observe.Refused, observe.Answered, observe.Unknown}),
		"origin":   texts([]observe.Origin{observe.OriginNone, observe.OriginMiddleware, observe.OriginSDK, observe.OriginNetHTTP, observe.OriginCaller, observe.OriginUser}),
	} {
		checkWords(t, name, defs[name], want)
	}
	checkWords(t, "wait", defs["wait"].Properties["for"], texts([]observe.WaitReason{
		observe.WaitBackoff, observe.WaitServer, observe.WaitGate, observe.WaitLimiter, observe.WaitSession, observe.WaitPutOff,
	}))
}

func checkWords(t *testing.T, name string, s *jsonschema.Schema, want []string) {
	t.Helper()
	var got []string
	for _, v := range s.Enum {
		got = append(got, v.(string))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", name, got, want)
	}
}

func texts[T ~string](values []T) []string {
	var all []string
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}
