package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/surecall/surecall/policy"
)

// What only harmless tools have needs a rule that makes one of the tools so, wherever it
// stands.
func TestHarmlessToolsAreNeeded(t *testing.T) {
	class := func(server, tool string, s policy.Safety) policy.Rule {
		return policy.Rule{Server: server, Tool: tool, Settings: policy.Settings{Safety: s}}
	}
	trust := policy.Rule{Server: "bank", Settings: policy.Settings{TrustAnnotations: new(true)}}
	for _, row := range []struct {
		name          string
		other         policy.Rule
		server, tool  string
		repeats, keys bool // that the settings have a meaning
	}{
		{"the same", class("", "x", policy.Keyed), "", "x", true, true},
		{"for all", class("", "", policy.Keyed), "bank", "x", true, true},
		{"for some", class("bank", "x_y", policy.Keyed), "", "x_*", true, true},
		{"crossing", class("", "*_y", policy.Idempotent), "", "x_*", true, false},
		{"not keyed", class("", "x", policy.ReadOnly), "", "", true, false},
		{"other tool", class("", "y", policy.Keyed), "", "x", false, false},
		{"other tools", class("", "y_*", policy.Keyed), "", "*_x?", true, true},
		{"other end", class("", "*_y", policy.Keyed), "", "*_x", false, false},
		{"other length", class("", "??", policy.Keyed), "", "x", false, false},
		{"other server", class("shop", "x", policy.Keyed), "bank", "x", false, false},
		{"unsafe", class("", "x", policy.Unsafe), "", "x", false, false},
		{"trusted", trust, "", "x", true, true},
		{"trusted elsewhere", trust, "shop", "x", false, false},
	} {
		for _, first := range []bool{true, false} {
			r := policy.Rule{Name: "r", Server: row.server, Tool: row.tool, Settings: policy.Settings{
				Retry: policy.Retry{Statuses: []int{404}}, Key: policy.Key{Header: "X-Key"},
			}}
			rules := []policy.Rule{row.other, r}
			if first {
				slices.Reverse(rules)
			}
			var want []string
			if !row.keys {
				want = append(want, "r: key.header")
			}
			if !row.repeats {
				want = append(want, "r: retry.statuses")
			}
			if got := problems(t, (&policy.Policy{Rules: rules}).Validate()); !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", row.name, got, want)
			}
		}
	}
}

// Of a file whose classes could not all be read, nothing is said that follows from it.
func TestHarmlessToolsOfABrokenFile(t *testing.T) {
	_, err := policy.Parse("f", []byte("version: 1\nrules:\n  - {tool: x, safty: keyed}\n  - {tool: x, retry: {codes: [1]}}\n"))
	if all := problemsOf(t, err); len(all) != 1 {
		t.Errorf("%v", err)
	}
	_, err = policy.Parse("f", []byte("version: 1\nrules:\n  - {tool: x, safety: read-only}\n  - {tool: x, retry: {codes: [1]}}\n"))
	if all := problemsOf(t, err); len(all) != 1 {
		t.Errorf("%v", err)
	}
}

// Globs are taken to overlap where, and only where, a name matches both.
func TestOverlap(t *testing.T) {
	names := []string{""}
	for begin, n := 0, 1; n <= 5; n++ {
		end := len(names)
		for _, name := range names[begin:end] {
			names = append(names, name+"a", name+"b")
		}
		begin = end
	}
	glob := rapid.StringOfN(rapid.RuneFrom([]rune("ab*?")), 1, 3, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b := glob.Draw(t, "a"), glob.Draw(t, "b")
		want := slices.ContainsFunc(names, func(name string) bool { return policy.Match(a, name) && policy.Match(b, name) })
		if got := policy.Overlap(a, b); got != want {
			t.Errorf("%q and %q overlap: %t", a, b, got)
		}
	})
}

// Many rules, and long globs, cost a bounded time.
func TestOverlapIsQuick(t *testing.T) {
	for _, form := range []string{"*%d%s", "%d%s", "x%[2]s%[1]d*"} {
		p := &policy.Policy{}
		for i := range 8000 {
			p.Rules = append(p.Rules,
				policy.Rule{Tool: fmt.Sprintf(form, i, strings.Repeat("a?", 40)), Settings: policy.Settings{Safety: policy.ReadOnly}},
				policy.Rule{Tool: fmt.Sprintf(form, i, strings.Repeat("b?", 40)), Settings: policy.Settings{Retry: policy.Retry{Statuses: []int{404}}}})
		}
		begin := time.Now()
		_ = p.Validate()
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s took %v", form, took)
		}
	}
}
