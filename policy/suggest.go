package policy

import (
	"slices"
	"strings"
)

// didYouMean returns the word that s is most likely a misspelling of, as an
// addition to a sentence, or nothing.
func didYouMean(s string, words []string) string {
	if w := nearest(s, words); w != "" {
		return "; did you mean " + w + "?"
	}
	return ""
}

// longestMisspelt bounds the work for a word: no name of ours is as long.
const longestMisspelt = 64

// nearest returns the word that is at most one in three letters away from s, the
// nearest first; case and the kind of dash do not count.
func nearest(s string, words []string) string {
	if len(s) > longestMisspelt {
		return ""
	}
	best, least := "", len(s)/3+1
	for _, w := range words {
		if d := distance(plain(s), plain(w)); d < least {
			best, least = w, d
		}
	}
	return best
}

func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return '_'
		}
		return r
	}, strings.ToLower(s))
}

// distance counts the letters that must be added, taken away, changed or swapped
// with their neighbour (optimal string alignment).
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		earlier := before
		before = slices.Clone(row)
		row[0] = i + 1
		for j := range len(b) {
			change := before[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(before[j+1]+1, row[j]+1, change)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], earlier[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
