package plaintext_test

import (
	"strings"
	"testing"

	"github.com/surecall/surecall/internal/plaintext"
)

const pad = "             " // to the margin

func TestParagraph(t *testing.T) {
	word := strings.Repeat("w", plaintext.Columns-13)
	for name, tc := range map[string]struct{ head, text, want string }{
		"empty":     {"  a", "", "  a\n"},
		"short":     {"  a          ", "b  c\nd", "  a          b c d\n"},
		"full":      {pad, word, pad + word + "\n"},
		"next line": {pad, word + " x", pad + word + "\n" + pad + "x\n"},
		"too long":  {pad, word + "x", pad + word + "\n" + pad + "x\n"},
		"long head": {strings.Repeat("h", plaintext.Columns), "x", strings.Repeat("h", plaintext.Columns) + "\n" + pad + "x\n"},
	} {
		if got := plaintext.Paragraph(tc.head, tc.text, 13); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
