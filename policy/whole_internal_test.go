package policy

import (
	"reflect"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// whole is a setting that is taken whole, with members of every kind.
type whole struct {
	Tool         string
	Arguments    map[string]string
	DidNotHappen []string
	Codes        []int64
	Wait         time.Duration `off:"no wait"`
	Believed     *bool
	Inner        struct{ Count int }
}

// A setting can be a struct: its members are read, written and shown like settings.
func TestWholeSetting(t *testing.T) {
	type settings struct {
		Whole whole
	}
	m := shapeOf(reflect.TypeFor[settings](), "key.", fieldNone, map[string]field{"key.whole": fieldKeyGuard}).members[0]
	const file = `tool: find
arguments:
  a: $.order
  b: "7"
did_not_happen: [none, not found]
codes: [-1, 0]
wait: off
believed: false
inner: {count: 3}
`
	want := whole{
		Tool: "find", Arguments: map[string]string{"a": "$.order", "b": "7"}, DidNotHappen: []string{"none", "not found"},
		Codes: []int64{-1, 0}, Wait: -1, Believed: new(false), Inner: struct{ Count int }{3},
	}
	read := func(file string) whole {
		t.Helper()
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(file), &doc); err != nil {
			t.Fatal(err)
		}
		var got whole
		r := &reader{file: "f"}
		r.value(doc.Content[0], m, reflect.ValueOf(&got).Elem())
		if len(r.problems) > 0 {
			t.Fatal(r.err())
		}
		return got
	}
	if got := read(file); !reflect.DeepEqual(got, want) {
		t.Errorf("read as %+v", got)
	}
	b, err := yaml.Marshal(written(m, reflect.ValueOf(want)))
	if err != nil {
		t.Fatal(err)
	}
	if got := read(string(b)); !reflect.DeepEqual(got, want) {
		t.Errorf("written as\n%s\nread as %+v", b, got)
	}
	const shown = "{tool: find, arguments: {a: $.order, b: 7}, did_not_happen: [none, not found], codes: [-1, 0], wait: off, believed: false, inner: {count: 3}}"
	if got := show(m, reflect.ValueOf(want)); got != shown {
		t.Errorf("shown as %s", got)
	}

	var doc yaml.Node
	if err := yaml.Unmarshal([]byte("tol: x\narguments: {a: 1}\ninner: {cuont: 1}"), &doc); err != nil {
		t.Fatal(err)
	}
	r := &reader{file: "f"}
	r.value(doc.Content[0], m, reflect.ValueOf(new(whole)).Elem())
	var got []string
	for _, p := range r.problems {
		got = append(got, p.Error())
	}
	if want := []string{
		`f:1:1: key.whole: "tol" is not a setting; did you mean tool?`,
		`f:2:16: key.whole.arguments: 1 is not a text: write it in quotes`,
		`f:3:9: key.whole.inner: "cuont" is not a setting; did you mean count?`,
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}
