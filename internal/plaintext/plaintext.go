// Package plaintext sets texts for people in plain lines.
package plaintext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Columns is the width that texts are wrapped to.
const Columns = 80

// OneLine keeps what is visible of a text, in one line: control characters, and those
// that change the direction of writing, become blanks.
func OneLine(text string) string {
	return strings.Join(strings.Fields(strings.Map(visible, text)), " ")
}

func visible(r rune) rune {
	if !unicode.IsGraphic(r) {
		return ' '
	}
	return r
}

// Paragraph is a head followed by a text, wrapped into lines that begin at the
// column indent.
func Paragraph(head, text string, indent int) string {
	var b strings.Builder
	b.WriteString(head)
	used := utf8.RuneCountInString(head)
	gap := ""
	for _, word := range split(text, Columns-indent) {
		n := utf8.RuneCountInString(gap + word)
		if used+n > Columns {
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
