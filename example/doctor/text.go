package main

import (
	"github.com/surecall/surecall/internal/plaintext"
	"github.com/surecall/surecall/observe"
)

const (
	// maxWords bounds what is shown of the words of a server or of an error, in
	// bytes.
	maxWords = 400
	// maxName bounds a name in a table or a headline, in bytes.
	maxName = 40
)

// plain makes a text of a server fit for a terminal and for one line: whatever is
// not visible becomes a blank (control characters, but also those that change
// the direction of writing), credentials go, and the rest is cut to max bytes.
func plain(text string, max int) string {
	cut := len(text) > max
	text = plaintext.OneLine(observe.Redact(text, max))
	if cut {
		text += "…"
	}
	return text
}

// quoted is plain, in quotation marks.
func quoted(text string, max int) string { return `"` + plain(text, max) + `"` }
