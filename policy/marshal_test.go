package policy_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/surecall/surecall/policy"
)

// A policy written in Go gives a file that reads back equal.
func TestMarshalReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyValidPolicy(t)
		file, err := policy.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		got, err := policy.Parse("f", file)
		if err != nil {
			t.Fatalf("%v\n%s", err, file)
		}
		if want := exported(p); !reflect.DeepEqual(exported(got), want) {
			t.Fatalf("got %+v\nwant %+v\n%s", exported(got), want, file)
		}
		again, err := policy.Marshal(got)
		if err != nil || string(again) != string(file) {
			t.Fatalf("written again: %v\n%s\n%s", err, again, file)
		}
	})
}

// Every setting survives alone, with each kind of value it has.
func TestMarshalEverySetting(t *testing.T) {
	for _, name := range policy.Fields() {
		t.Run(name, func(t *testing.T) {
			values := 0
			rapid.Check(t, func(t *rapid.T) {
				r := policy.Rule{Name: "r"}
				v := policy.SettingAt(&r.Settings, name)
				v.Set(anyValue(t, v.Type(), memberAt(name), name))
				keyed := policy.Rule{Name: "keyed", Tool: "keyed", Settings: policy.Settings{Safety: policy.Keyed}}
				p := &policy.Policy{Rules: []policy.Rule{keyed, r}}
				if p.Validate() != nil {
					return
				}
				file, err := policy.Marshal(p)
				if err != nil {
					t.Fatal(err)
				}
				got, err := policy.Parse("f", file)
				if err != nil || !reflect.DeepEqual(exported(got), exported(p)) {
					t.Fatalf("%v\n%s", err, file)
				}
				if !strings.Contains(string(file), name[strings.LastIndex(name, ".")+1:]+":") {
					t.Fatalf("not in the file:\n%s", file)
				}
				values++
			})
			if values == 0 {
				t.Error("no valid value")
			}
		})
	}
}

func TestMarshalRefusesWhatIsWrong(t *testing.T) {
	var bad *policy.RuleError
	_, err := policy.Marshal(&policy.Policy{Rules: []policy.Rule{{Settings: policy.Settings{Safety: "read-only"}}}})
	if !errors.As(err, &bad) {
		t.Errorf("got %v", err)
	}
	if file, err := policy.Marshal(nil); err != nil || string(file) != "version: 1\n" {
		t.Errorf("nil: %q, %v", file, err)
	}
}

// exported is the policy without where it was read from; what is off is -1.
func exported(p *policy.Policy) []policy.Rule {
	rules := []policy.Rule{}
	for _, r := range p.Rules {
		rules = append(rules, policy.Rule{Name: r.Name, Server: r.Server, Tool: r.Tool, Settings: r.Settings})
	}
	return rules
}

func memberAt(path string) policy.Member {
	var find func(all []policy.Member) (policy.Member, bool)
	find = func(all []policy.Member) (policy.Member, bool) {
		for _, m := range all {
			if m.Path == path {
				return m, true
			}
			if in, ok := find(m.Members); ok {
				return in, true
			}
		}
		return policy.Member{}, false
	}
	m, _ := find(policy.Shape())
	return m
}

// anyValidPolicy draws rules with any settings, and takes away what Validate
// reports.
func anyValidPolicy(t *rapid.T) *policy.Policy {
	p := &policy.Policy{Rules: rapid.SliceOfN(rapid.Custom(anySettings), 0, 6).Draw(t, "rules")}
	if n := len(p.Rules); n > 0 && rapid.Bool().Draw(t, "defaults") {
		p.Rules[n-1].Name, p.Rules[n-1].Server, p.Rules[n-1].Tool = "defaults", "", ""
	}
	for {
		var joined interface{ Unwrap() []error }
		if !errors.As(p.Validate(), &joined) {
			return p
		}
		var bad *policy.RuleError
		errors.As(joined.Unwrap()[0], &bad)
		switch bad.Setting {
		case "name", "server", "tool":
			p.Rules = append(p.Rules[:bad.Index:bad.Index], p.Rules[bad.Index+1:]...)
		default:
			policy.SettingAt(&p.Rules[bad.Index].Settings, bad.Setting).SetZero()
		}
	}
}

func anySettings(t *rapid.T) policy.Rule {
	r := policy.Rule{
		Name:   rapid.OneOf(rapid.Just(""), rapid.SampledFrom([]string{"a", "a b", "no: yes", "- x", "#", "1", "null", "c'd\"e", "é\u2028"}), rapid.String()).Draw(t, "name"),
		Server: rapid.SampledFrom([]string{"", "*", "server", "https://*.example/mcp", "other"}).Draw(t, "server"),
		Tool:   rapid.SampledFrom([]string{"", "*", "read_*", "pay", "p?y", "true", "12", "*x"}).Draw(t, "tool"),
	}
	for _, name := range policy.Fields() {
		if rapid.IntRange(0, 4).Draw(t, "set "+name) == 0 {
			v := policy.SettingAt(&r.Settings, name)
			v.Set(anyValue(t, v.Type(), memberAt(name), name))
		}
	}
	return r
}

// anyValue draws a value of a setting's type, as it stands in a file, with the edges.
func anyValue(t *rapid.T, of reflect.Type, m policy.Member, name string) reflect.Value {
	v := reflect.New(of).Elem()
	least := int64(1)
	if m.Off != "" {
		least = -1
	}
	words := policy.Words(of, m.Form)
	switch kind := of.Kind(); {
	case kind == reflect.Pointer:
		v.Set(reflect.New(of.Elem()))
		v.Elem().Set(anyValue(t, of.Elem(), m, name))
	case kind == reflect.Struct:
		for i, inner := range m.Members {
			v.Field(i).Set(anyValue(t, inner.Type, inner, inner.Path))
		}
	case kind == reflect.Slice:
		n := rapid.IntRange(0, 3).Draw(t, name+" length")
		v.Set(reflect.MakeSlice(of, n, n))
		for i := range n {
			v.Index(i).Set(anyItem(t, of.Elem(), m, name))
		}
	case kind == reflect.Map:
		v.Set(reflect.MakeMap(of))
		for _, key := range rapid.SliceOfNDistinct(rapid.StringN(1, 8, -1), 0, 3, rapid.ID).Draw(t, name+" names") {
			v.SetMapIndex(reflect.ValueOf(key).Convert(of.Key()), anyValue(t, of.Elem(), m, name))
		}
	case kind == reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	case kind == reflect.String && words != nil:
		v.SetString(rapid.SampledFrom(words).Draw(t, name))
	case kind == reflect.String && strings.HasSuffix(name, ".at"):
		v.SetString(rapid.SampledFrom([]string{"/status", "/a~1b/0", "/"}).Draw(t, name))
	case kind == reflect.String:
		v.SetString(rapid.OneOf(rapid.SampledFrom([]string{"off", "Idempotency-Key", "/a/b", "x: y", "7", "é", " x", "\n\t"}), rapid.StringN(1, 20, -1)).Draw(t, name))
	case of == reflect.TypeFor[time.Duration]() && rapid.Bool().Draw(t, "round"):
		v.SetInt(int64(time.Second) * rapid.Int64Range(1, 100_000).Draw(t, name))
	case v.CanInt():
		n := rapid.Int64Range(least, math.MaxInt64).Draw(t, name)
		v.SetInt(max(n, least) | 1) // not zero, which sets nothing
	case v.CanFloat():
		v.SetFloat(rapid.OneOf(rapid.SampledFrom([]float64{float64(least), 1, 10, 1.0 / 60, 7.0 / 3600, 1e300, 0.1}), rapid.Float64Range(1e-9, 1e9)).Draw(t, name))
	}
	return v
}

// anyItem draws an item of a list, where numbers can be anything.
func anyItem(t *rapid.T, of reflect.Type, m policy.Member, name string) reflect.Value {
	v := reflect.New(of).Elem()
	switch {
	case v.CanInt() && strings.HasSuffix(name, "statuses"):
		v.SetInt(rapid.Int64Range(300, 999).Draw(t, name))
	case v.CanInt():
		v.SetInt(rapid.Int64().Draw(t, name))
	default:
		return anyValue(t, of, m, name)
	}
	return v
}
