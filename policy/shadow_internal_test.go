package policy

import (
	"strconv"
	"strings"
	"testing"
)

// The search for rules that never count takes a number of steps that grows with the
// number of rules, not with its square, whatever kind they are of.
func TestCoverIsQuick(t *testing.T) {
	const n = 10_000
	for name, rule := range map[string]func(i string) Rule{
		"tools":         func(i string) Rule { return Rule{Tool: "get_" + i} },
		"prefixes":      func(i string) Rule { return Rule{Tool: "get_" + i + "_*"} },
		"endings":       func(i string) Rule { return Rule{Tool: "*_" + i} },
		"many servers":  func(i string) Rule { return Rule{Server: "s" + i, Tool: "get_*"} },
		"servers only":  func(i string) Rule { return Rule{Server: "https://s" + i + "/*"} },
		"both":          func(i string) Rule { return Rule{Server: "s" + i[:1] + "*", Tool: "get_" + i} },
		"of all widths": func(i string) Rule { return Rule{Tool: strings.Repeat("x", len(i)*9+int(i[0]-'0')) + "-" + i + "*"} },
	} {
		var c cover
		covered := 0
		for i := range n {
			r := rule(strconv.Itoa(i + n)) // all of one length
			r.Safety = ReadOnly
			if c.add(&r, i)[0].rule > 0 {
				covered++
			}
		}
		if covered > 0 || c.lookups > 60*n {
			t.Errorf("%s: %d covered, %d steps", name, covered, c.lookups)
		}
	}
}

// Rules that are made to cover each other are given up in the end.
func TestCoverGivesUp(t *testing.T) {
	var c cover
	a := strings.Repeat("a", 90)
	for i := range 90 * 90 {
		c.add(&Rule{Server: a[:i%90] + "*", Tool: a[:i/90] + "*", Settings: Settings{Safety: ReadOnly}}, i)
	}
	if c.lookups < mostLookups || c.lookups > mostLookups+90*90*2 {
		t.Errorf("%d steps", c.lookups)
	}
}
