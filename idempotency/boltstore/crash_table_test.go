//go:build unix

package boltstore_test

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// The phases of a payment in which a payer can be killed.
const (
	whileStarting   = "while it started"
	beforeBegin     = "before begin"
	whileBeginning  = "while begin was written"
	beforeSending   = "between begin and send"
	inFlight        = "in flight, nothing paid"
	afterEffect     = "after the effect, before the answer"
	beforeSettling  = "between answer and settle"
	whileSettling   = "while settle was written"
	afterSettlement = "after settle"
)

var phases = []string{
	whileStarting, beforeBegin, whileBeginning, beforeSending, inFlight, afterEffect, beforeSettling, whileSettling, afterSettlement,
}

// phaseOf is where a payer stood whose journal ends with a point.
func phaseOf(last point, paid bool) string {
	switch {
	case last == sent && paid:
		return afterEffect
	case last == sent:
		return inFlight
	}
	phase := map[point]string{
		ready: beforeBegin, asked: beforeBegin, beginning: whileBeginning, begun: beforeSending, answered: beforeSettling,
		settling: whileSettling, settled: afterSettlement, ended: afterSettlement,
	}[last]
	if phase == "" {
		return whileStarting
	}
	return phase
}

// table tells the kills by phase and the intents by ending.
func (c *campaign) table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\n\nKILLED\tTIMES")
	for _, phase := range phases {
		fmt.Fprintf(w, "%s\t%d\n", phase, c.kills[phase])
	}
	fmt.Fprintln(w, "\nTOOL\tINTENTS\tRESULT, PAID\tREFUSED, NOT PAID\tUNKNOWN, PAID\tUNKNOWN, NOT PAID\tPAID TWICE")
	for tool := range 4 {
		fmt.Fprintln(w, c.row(tool))
	}
	w.Flush()
	return b.String()
}

func (c *campaign) row(tool int) string {
	var n, result, refusals, unknownPaid, unknownUnpaid, twice int
	for i := tool; i < c.intents; i += 4 {
		n++
		paid := c.paid(i)
		switch told := c.told[i]; {
		case paid > 1:
			twice++
		case told == refused:
			refusals++
		case told != unknown:
			result++
		case paid > 0:
			unknownPaid++
		default:
			unknownUnpaid++
		}
	}
	return fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%d\t%d", toolOf(tool), n, result, refusals, unknownPaid, unknownUnpaid, twice)
}
