package main

import (
	"fmt"
	"io"
	"strings"
)

// width of the table, in columns.
const width = 118

const (
	head   = "%-12s  %-10s  %-38s  %-18s  %-8s  %8s %5s %7s\n"
	line   = "%-12s  %-10s  %-38s  %-18s  %-8s  %8d %5d %7d\n"
	indent = "          "
)

const legend = `
SAFETY    what the policy says of the tool. read_only and idempotent: a repeat is harmless. keyed: harmless with the
          same idempotency key. unsafe, the default: a call that may have run is never sent again.
OUTCOME   what the call came to. Only TOOL_SUCCESS is a success; HTTP 200 alone is none.
DELIVERY  not_sent: nothing left this client. refused: the server says that it did not run the tool. answered: one
          complete answer arrived. unknown: the tool may have run, or not.
ATTEMPTS  tries, a refusal on this side included. POSTS: their HTTP requests; a question to the user takes one more.
EFFECTS   how often the server really ran the tool, from its own ledger.
model     what the language model reads. caller: the error that the calling program gets; the model sees nothing yet.
`

// printTable prints the rows, each with what the model or the caller sees, and a
// legend.
func printTable(w io.Writer, rows []row) {
	fmt.Fprintf(w, head, "TOOL", "SAFETY", "WHAT THE SERVER DOES", "OUTCOME", "DELIVERY", "ATTEMPTS", "POSTS", "EFFECTS")
	for i := range rows {
		printRow(w, &rows[i])
	}
	fmt.Fprint(w, legend, "\n")
}

func printRow(w io.Writer, r *row) {
	e := r.ending()
	fmt.Fprintf(w, line, r.tool, r.record.Safety, r.story, e.outcome, e.delivery, e.attempts, e.posts, e.effects)
	who, text := r.seen()
	for i, part := range wrap(text, width-len(indent)) {
		if i > 0 {
			who = ""
		}
		fmt.Fprintf(w, "  %-8s%s\n", who, part)
	}
}

// wrap breaks a text into lines of at most n bytes where it has spaces.
func wrap(text string, n int) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		last := len(lines) - 1
		if last >= 0 && len(lines[last])+1+len(word) <= n {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}
