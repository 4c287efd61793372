package policy_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/surecall/surecall/policy"
)

func TestMatch(t *testing.T) {
	for _, row := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"*", "anything/at all", true},
		{"**", "a", true},
		{"?", "", false},
		{"?", "a", true},
		{"?", "é", true},
		{"?", "ab", false},
		{"??", "é", false},
		{"pay", "pay", true},
		{"pay", "Pay", false},
		{"pay", "payment", false},
		{"pay*", "pay", true},
		{"pay*", "payment", true},
		{"pay*", "repay", false},
		{"*pay", "repay", true},
		{"*pay", "paypay", true},
		{"*pay*", "repayment", true},
		{"p?y", "pay", true},
		{"p?y", "py", false},
		{"a*b*c", "a__b__b__c", true},
		{"a*b*c", "a__c__b", false},
		{"*a?c", "aacabc", true},
		{"https://*/mcp", "https://host:8080/one/two/mcp", true},
		{"https://*/mcp", "https://host/mcp/", false},
		{"[a-z]", "a", false},
		{"[a-z]", "[a-z]", true},
		{"{a,b}", "a", false},
		{`\*`, `\anything`, true},
		{`\*`, "*", false},
		{"*é?", "aéé", true},
		{"?\xff", "a\xff", true},
		{"\xff", "\xfe", false},
		{"?", "\xff", true},
		{"é", "\xc3", false},
	} {
		if got := policy.Match(row.pattern, row.name); got != row.want {
			t.Errorf("Match(%q, %q) = %v", row.pattern, row.name, got)
		}
	}
}

// naive is the meaning of a glob, as short as it can be said.
func naive(pattern, name []rune) bool {
	switch {
	case len(pattern) == 0:
		return len(name) == 0
	case pattern[0] == '*':
		return naive(pattern[1:], name) || len(name) > 0 && naive(pattern, name[1:])
	}
	return len(name) > 0 && (pattern[0] == '?' || pattern[0] == name[0]) && naive(pattern[1:], name[1:])
}

func TestMatchAgainstNaive(t *testing.T) {
	pattern := rapid.StringOfN(rapid.SampledFrom([]rune("ab/é*?")), 0, 10, -1)
	name := rapid.StringOfN(rapid.SampledFrom([]rune("ab/é")), 0, 12, -1)
	rapid.Check(t, func(t *rapid.T) {
		p, n := pattern.Draw(t, "pattern"), name.Draw(t, "name")
		if got := policy.Match(p, n); got != naive([]rune(p), []rune(n)) {
			t.Fatalf("Match(%q, %q) = %v", p, n, got)
		}
	})
}

func FuzzMatch(f *testing.F) {
	f.Add("a*b?c", "aébéc")
	f.Add("*\xff?", "\xc3\xff\xc3")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 12 || len(name) > 12 {
			return
		}
		got := policy.Match(pattern, name)
		if utf8.ValidString(pattern) && utf8.ValidString(name) && got != naive([]rune(pattern), []rune(name)) {
			t.Errorf("Match(%q, %q) = %v", pattern, name, got)
		}
		if !policy.Match("*", name) || !strings.ContainsAny(name, "*?") && !policy.Match(name, name) {
			t.Errorf("%q does not match itself", name)
		}
	})
}

// A pattern that costs a backtracking matcher forever.
func TestMatchDoesNotExplode(t *testing.T) {
	pattern, name := strings.Repeat("a*", 500)+"b", strings.Repeat("a", 20_000)
	start := time.Now()
	if policy.Match(pattern, name) {
		t.Error("matches")
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}
