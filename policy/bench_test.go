package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/surecall/surecall/policy"
)

// manyRules is a file of n rules, of different kinds.
func manyRules(n int, rule func(b *strings.Builder, i int)) []byte {
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n")
	for i := range n {
		rule(&b, i)
	}
	return []byte(b.String())
}

func shortRule(b *strings.Builder, i int) {
	fmt.Fprintf(b, "  - {server: s%d, tool: get_%d_*, safety: read_only}\n", i%100, i)
}

func longRule(b *strings.Builder, i int) {
	fmt.Fprintf(b, "  - name: rule %d\n    server: https://s%d.example/*\n    tool: get_%d_*\n    safety: read_only\n"+
		"    retry:\n      repeats: 3\n      backoff: 300ms\n      statuses: [404, 410]\n    limits: {call: 1m}\n", i, i%100, i)
}

func TestManyRules(t *testing.T) {
	begin := time.Now()
	p, err := policy.Parse("f", manyRules(10_000, shortRule))
	if err != nil || len(p.Rules) != 10_000 {
		t.Fatal(err)
	}
	t.Log(time.Since(begin)) // BenchmarkParse has the numbers
}

func BenchmarkParse(b *testing.B) {
	for name, rule := range map[string]func(*strings.Builder, int){"10,000 rules of a line": shortRule, "10,000 rules of nine lines": longRule} {
		file := manyRules(10_000, rule)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := policy.Parse("f", file); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
