package policy

import "unicode/utf8"

// Match reports whether the whole name matches the pattern: * stands for any run
// of characters, slashes and nothing included, ? for exactly one character, and
// every other character for itself. There is no escape, and case counts.
//
// It never takes more than about len(pattern) times len(name) steps: only the
// last * is ever tried again, for if the text before it has matched somewhere,
// the earliest place serves as well as any other.
func Match(pattern, name string) bool {
	p, n := 0, 0
	star, from := -1, 0 // the last * seen, and where the text after its run begins
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, n
			p++
		case p < len(pattern) && pattern[p] == '?':
			p++
			n += firstLen(name[n:])
		case p < len(pattern) && pattern[p] == name[n]:
			p++
			n++
		case star >= 0:
			from += firstLen(name[from:])
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

// firstLen is the length of the first character of a text that is not empty; a
// byte that is not UTF-8 is a character by itself.
func firstLen(s string) int {
	_, size := utf8.DecodeRuneInString(s)
	return size
}
