package policy_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/surecall/surecall/policy"
)

func TestNeverCounts(t *testing.T) {
	keyed, strict := policy.Settings{Safety: policy.Keyed}, policy.Settings{Strict: new(true)}
	both := policy.Settings{Safety: policy.Unsafe, Strict: new(false)}
	on := func(server, tool string, s policy.Settings) policy.Rule {
		return policy.Rule{Server: server, Tool: tool, Settings: s}
	}
	for _, row := range []struct {
		name  string
		rules []policy.Rule
		want  []string
	}{
		{"the same", []policy.Rule{on("", "a", keyed), on("", "a", keyed)}, []string{"rules[1]: tool"}},
		{"after everything", []policy.Rule{on("", "", keyed), on("s", "a*", keyed)}, []string{"rules[1]: tool"}},
		{"after a star", []policy.Rule{on("*", "*", keyed), on("", "", keyed)}, []string{"rules[1]: tool"}},
		{"after a wider prefix", []policy.Rule{on("", "get_*", keyed), on("", "get_a_*", keyed), on("", "get_?", keyed), on("", "get_*_x", keyed)},
			[]string{"rules[1]: tool", "rules[2]: tool", "rules[3]: tool"}},
		{"after a prefix that is the name", []policy.Rule{on("", "get*", keyed), on("", "get", keyed)}, []string{"rules[1]: tool"}},
		{"after the same wildcards", []policy.Rule{on("", "a?*", keyed), on("", "a?b", keyed), on("", "a?*c*", keyed)}, []string{"rules[1]: tool", "rules[2]: tool"}},
		{"after a wider server", []policy.Rule{on("https://*", "a", keyed), on("https://x/mcp", "a", keyed)}, []string{"rules[1]: tool"}},
		{"one of two settings", []policy.Rule{on("", "a*", keyed), on("", "ab", both)}, []string{"rules[1]: safety"}},
		{"both, by two rules", []policy.Rule{on("", "a*", keyed), on("s", "", strict), on("s", "ab", both)}, []string{"rules[2]: tool"}},
		{"the defaults", []policy.Rule{on("", "", keyed), {Name: "defaults", Settings: keyed}}, []string{"defaults: tool"}},

		{"wider after narrower", []policy.Rule{on("", "ab", keyed), on("", "a*", keyed), on("", "", keyed)}, nil},
		{"other settings", []policy.Rule{on("", "", keyed), on("", "a", strict)}, nil},
		{"other server", []policy.Rule{on("s", "", keyed), on("", "a", keyed), on("t", "b", keyed)}, nil},
		{"neither wider", []policy.Rule{on("s", "a*", keyed), on("s*", "ab", keyed)}, nil},
		{"not a prefix", []policy.Rule{on("", "ab*", keyed), on("", "a?", keyed), on("", "ac", keyed)}, nil},
		{"another wildcard", []policy.Rule{on("", "a?*", keyed), on("", "abc", keyed), on("", "*b", keyed), on("", "ab", keyed)}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := problems(t, (&policy.Policy{Rules: row.rules}).Validate()); !slices.Equal(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// What is said never to count can be taken away, and nothing changes.
func TestNeverCountsIsTrue(t *testing.T) {
	patterns := rapid.SampledFrom([]string{"", "*", "a", "a*", "ab", "ab*", "a?", "a?*", "a?b", "*b", "*b*", "a*b", "?", "b", "**"})
	seen := 0
	rapid.Check(t, func(t *rapid.T) {
		p := &policy.Policy{Rules: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) policy.Rule {
			return policy.Rule{Server: patterns.Draw(t, "server"), Tool: patterns.Draw(t, "tool"), Settings: policy.Settings{
				Safety: rapid.SampledFrom([]policy.Safety{"", policy.Keyed, policy.ReadOnly}).Draw(t, "safety"),
				Retry:  policy.Retry{Repeats: rapid.IntRange(0, 3).Draw(t, "repeats")},
			}}
		}), 1, 5).Draw(t, "rules")}
		less := &policy.Policy{Rules: slices.Clone(p.Rules)}
		var joined interface{ Unwrap() []error }
		if !errors.As(p.Validate(), &joined) {
			return
		}
		for _, err := range joined.Unwrap() {
			var bad *policy.RuleError
			switch errors.As(err, &bad); {
			case !strings.Contains(bad.Problem, "never counts"):
				continue
			case bad.Setting == "tool":
				less.Rules[bad.Index].Settings = policy.Settings{}
			default:
				policy.SettingAt(&less.Rules[bad.Index].Settings, bad.Setting).SetZero()
			}
			seen++
		}
		for _, server := range []string{"", "a", "ab", "b", "axb"} {
			for _, tool := range []string{"", "a", "ab", "b", "axb", "c"} {
				if got, want := less.Resolve(server, tool, nil), p.Resolve(server, tool, nil); !reflect.DeepEqual(got, want) {
					t.Fatalf("%s/%s: got %+v, want %+v", server, tool, got, want)
				}
			}
			if got, want := less.Reads(server), p.Reads(server); !reflect.DeepEqual(got, want) {
				t.Fatalf("reads of %s: got %+v, want %+v", server, got, want)
			}
		}
	})
	if seen == 0 {
		t.Error("nothing was said")
	}
}
