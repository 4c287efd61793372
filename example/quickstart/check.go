package main

import (
	"fmt"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// check says what is wrong with the calls: one line each, nothing if all is well.
// effects is the server's ledger.
func check(rows []row, effects func(tool string) int) []string {
	var wrong []string
	ran := map[string]int{}
	for i := range rows {
		wrong = append(wrong, checkRow(i+1, &rows[i])...)
		ran[rows[i].tool] += rows[i].effects
	}
	for tool, n := range ran {
		if now := effects(tool); now != n {
			wrong = append(wrong, fmt.Sprintf("%s ran %d times, %d of them after its call had ended", tool, now, now-n))
		}
	}
	return wrong
}

func checkRow(n int, r *row) []string {
	var wrong []string
	say := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("call %d, %s: %s", n, r.tool, fmt.Sprintf(format, args...)))
	}
	got := r.ending()
	if got != r.want {
		say("ended as %+v, expected %+v", got, r.want)
	}
	if r.record.Safety == string(policy.Unsafe) && got.effects > 1 {
		say("an unsafe tool ran %d times", got.effects)
	}
	if got.delivery != observe.NotSent && r.arrived != got.posts {
		say("the record says %d POSTs, the server saw %d", got.posts, r.arrived)
	}
	return wrong
}
