package main

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSplitWords(t *testing.T) {
	for text, want := range map[string][]string{
		"a":                    {"a"},
		"  a\tb\n c ":          {"a", "b", "c"},
		`a 'b c' "d e"`:        {"a", "b c", "d e"},
		`a'b'"c"d`:             {"abcd"},
		`a '' ""`:              {"a", "", ""},
		`a\ b \'c\'`:           {"a b", "'c'"},
		`'a\b' "a\b" "a\"b\\"`: {`a\b`, `a\b`, `a"b\`},
		`"$HOME" *`:            {"$HOME", "*"},
		`"é ü" ñ`:              {"é ü", "ñ"},
	} {
		if got, err := splitWords(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestSplitWordsErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":         "no program",
		"  ":       "no program",
		"'' a":     "no program",
		`a "b`:     `the quote " at byte 3 is not closed`,
		`a 'b\'c'`: "the quote ' at byte 8 is not closed",
		`a\`:       "backslash at the end",
	} {
		if got, err := splitWords(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
}

// TestSplitWordsKeepsQuotedWords: what a shell would quote comes back as it was.
func TestSplitWordsKeepsQuotedWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.String(), 1, 5).Draw(t, "words")
		if want[0] == "" {
			want[0] = "x"
		}
		var quoted []string
		for _, w := range want {
			quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
		}
		got, err := splitWords(strings.Join(quoted, " "))
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q, %v; want %q", got, err, want)
		}
	})
}
