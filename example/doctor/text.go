package main

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/surecall/surecall/observe"
)

const (
	// columns is the width that texts are wrapped to.
	columns = 80
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
	text = oneLine(observe.Redact(text, max))
	if cut {
		text += "…"
	}
	return text
}

// oneLine keeps what is visible of a text, credentials included.
func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.Map(visible, text)), " ")
}

func visible(r rune) rune {
	if !unicode.IsGraphic(r) {
		return ' '
	}
	return r
}

// quoted is plain, in quotation marks.
func quoted(text string, max int) string { return `"` + plain(text, max) + `"` }

// paragraph is a head followed by a text, wrapped into lines that begin at the
// column indent.
func paragraph(head, text string, indent int) string {
	var b strings.Builder
	b.WriteString(head)
	used := utf8.RuneCountInString(head)
	gap := ""
	for _, word := range split(text, columns-indent) {
		n := utf8.RuneCountInString(gap + word)
		if used+n > columns {
			b.WriteString("\n" + strings.Repeat(" ", indent))
			used, gap = indent, ""
			n = utf8.RuneCountInString(word)
		}
		b.WriteString(gap + word)
		used, gap = used+n, " "
	}
	b.WriteByte('\n')
	return b.String()
}

// split returns the words of a text, those longer than width in pieces.
func split(text string, width int) []string {
	var words []string
	for _, word := range strings.Fields(text) {
		runes := []rune(word)
		for len(runes) > width {
			words = append(words, string(runes[:width]))
			runes = runes[width:]
		}
		words = append(words, string(runes))
	}
	return words
}
