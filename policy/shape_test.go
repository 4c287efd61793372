package policy_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/surecall/surecall/policy"
)

// The file has a place for every setting, and only for settings: a field that is added
// to Settings, and not to the list of fields, fails here.
func TestEverySettingIsInTheFile(t *testing.T) {
	var got []string
	var walk func([]policy.Member)
	walk = func(all []policy.Member) {
		for _, m := range all {
			switch {
			case m.Field == m.Path:
				got = append(got, m.Path)
			case m.Field == "" && len(m.Members) > 0:
				walk(m.Members)
			default:
				t.Errorf("%s stands in the file under no name of Fields", m.Path)
			}
		}
	}
	walk(policy.Shape())
	want := policy.Fields()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the file has  %q\nsettings are %q", got, want)
	}
}

// What a negative value turns off can be turned off in the file, and nothing else.
func TestOffIsInStep(t *testing.T) {
	for _, name := range policy.Fields() {
		r := policy.Rule{Name: "r", Settings: policy.Settings{Retry: policy.Retry{Repeats: -1}}}
		v := policy.SettingAt(&r.Settings, name)
		switch v.Kind() {
		case reflect.Int, reflect.Int64:
			v.SetInt(-1)
		case reflect.Float64:
			v.SetFloat(-1)
		default:
			continue
		}
		var bad *policy.RuleError
		err := (&policy.Policy{Rules: []policy.Rule{r}}).Validate()
		if valid := !errors.As(err, &bad) || bad.Setting != name; valid != (memberAt(name).Off != "") {
			t.Errorf("%s: -1 is valid: %t; the tag says off:%q", name, valid, memberAt(name).Off)
		}
	}
}

// A type with a closed set of words has them listed.
func TestWordsAreListed(t *testing.T) {
	for _, name := range policy.Fields() {
		of := memberAt(name).Type
		check, ok := of.MethodByName("Valid")
		if !ok {
			continue
		}
		words := policy.Words(of, "")
		if len(words) == 0 {
			t.Errorf("%s has no list of words", of)
		}
		for _, w := range words {
			if !check.Func.Call([]reflect.Value{reflect.ValueOf(w).Convert(of)})[0].Bool() {
				t.Errorf("%s: %q is not valid", name, w)
			}
		}
	}
}
