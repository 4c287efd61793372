package policy

import "unicode/utf8"

// Match reports whether the whole name matches the pattern: * stands for any run
// of characters, slashes and nothing included, ? for exactly one character, and
// every other character for itself. There is no escape, and case counts.
//
// It never takes more than len(pattern) times len(name) steps: only the last *
// is ever tried again, for if the text before it has matched somewhere, the
// earliest place serves as well as any other.
func Match(pattern, name string) bool {
	p, n := 0, 0
	star, from := -1, 0 // the last * seen, and where the text after its run begins
	for n < len(name) {
		switch step := matchOne(pattern[p:], name[n:]); {
		case step > 0:
			p, n = p+runeLen(pattern[p:]), n+step
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, n
			p++
		case star >= 0:
			from += runeLen(name[from:])
			p, n = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchOne returns the length of the name's first character if the pattern's
// first one, other than *, stands for it; else 0.
func matchOne(pattern, name string) int {
	if pattern == "" || pattern[0] == '*' {
		return 0
	}
	size := runeLen(name)
	if pattern[0] == '?' || runeLen(pattern) == size && pattern[:size] == name[:size] {
		return size
	}
	return 0
}

// runeLen is the length of the first character of a text that is not empty; a
// byte that is not UTF-8 is a character by itself.
func runeLen(s string) int {
	if s[0] < utf8.RuneSelf {
		return 1
	}
	_, size := utf8.DecodeRuneInString(s)
	return size
}
