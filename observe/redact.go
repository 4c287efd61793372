package observe

import (
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxQuoted bounds a server's words that are quoted in a text, in bytes.
const maxQuoted = 200

// secretName matches up to the value of a member whose name says that it is a secret;
// what is appended ends its group.
const secretName = `(?i)((?:passw(?:or)?d|passphrase|passwd|\bpass|pwd|secret|token|api[_-]?key|apikey|account[_-]?key|access[_-]?key|` +
	`private[_-]?key|client[_-]?secret|client[_-]?assertion|code[_-]?verifier|refresh|otp|cvv|cvc|pin[_-]?code|credentials?|session[_-]?id|signature|\bsig)["'\\]*\s*[:=]\s*\[?\s*`

// secrets are the shapes of credentials that servers and networks are known to
// echo. Each is replaced by "[redacted]", but for its first group.
var secrets = []*regexp.Regexp{
	// Authorization values: scheme and credentials (RFC 9110, section 11.4).
	regexp.MustCompile(`(?i)\b((?:bearer|basic|digest|token)\s+)[A-Za-z0-9\-._~+/=]{6,}`),
	// JSON Web Tokens (RFC 7519).
	regexp.MustCompile(`()\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{2,}(?:\.[A-Za-z0-9_-]*)?`),
	// Cloud, payment, chat and repository keys by their published prefixes.
	regexp.MustCompile(`()\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}`),
	regexp.MustCompile(`()\b(?:sk|pk|rk|whsec)_(?:live_|test_)?[A-Za-z0-9]{8,}`),
	regexp.MustCompile(`()\bsk-[A-Za-z0-9_-]{12,}`),
	regexp.MustCompile(`()\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|xapp-|npm_|pypi-|AIza|ya29\.|SG\.|hf_|dop_v1_|shpat_|sq0[a-z]{3}-|lin_api_|EAA[A-Z])[A-Za-z0-9_-]{8,}`),
	regexp.MustCompile(`()-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`),
	// Cookies, all pairs of them.
	regexp.MustCompile(`(?i)((?:set-)?cookie["'\\]*\s*[:=]\s*)[^"<>]+`),
	// Authorization, with the scheme's name or without.
	regexp.MustCompile(`(?i)(authorization["'\\]*\s*[:=]\s*["'\\]*)(?:[A-Za-z][\w-]*\s+)?[^\s"',;<>\\]{3,}`),
	// name=value, "name": "value" and "name": ["value"], also within a JSON string,
	// where the name says that it is a secret: quoted values first, whole.
	regexp.MustCompile(secretName + `\\*["'])(?:[^"'\\]|\\[^"'])*`),
	regexp.MustCompile(secretName + `)[^\s"'&,;<>}\]\\]{3,}`),
	// Credentials and query of a URL.
	regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^\s"'<>]*@`),
	regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s?"'<>]*\?)[^\s"'<>]+`),
}

// Redact makes a server's text fit for a record: control characters become
// spaces, what looks like a credential becomes "[redacted]", and the text is cut
// after max bytes on a character's border. E-mail addresses stay: see
// [RedactEmail].
func Redact(text string, max int) string { return (*Redactor)(nil).Text(text, max) }

// window cleans the part of a text that is looked at: credentials are looked for
// before the cut to max, so that none is cut in half, but not far beyond it.
func window(text string, max int) string {
	if limit := 4*max + 1024; len(text) > limit {
		text = clip(text, limit)
		// What is cut here might not be recognised any longer.
		if i := strings.LastIndexAny(text, " \n\t,;"); i > max {
			text = text[:i]
		}
	}
	return strings.Map(printable, strings.ToValidUTF8(text, "\uFFFD"))
}

// redacted stands for what was taken out; a text that was redacted before keeps it.
const redacted = "[redacted]"

// findShapes finds what looks like a credential, without the first groups.
func findShapes(found []span, text string) []span {
	for _, re := range secrets {
		for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
			if at := (span{m[3], m[1]}); !strings.Contains(redacted, text[at.from:at.to]) {
				found = append(found, at)
			}
		}
	}
	return found
}

var email = regexp.MustCompile(`[\p{L}\p{N}._%+-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+`)

// RedactEmail replaces e-mail addresses by "[redacted]".
func RedactEmail(text string) string { return email.ReplaceAllString(text, "[redacted]") }

// printable replaces control characters, which can rewrite a terminal or a log.
func printable(r rune) rune {
	if r < 0x20 || r == 0x7f || (r >= 0x80 && r < 0xa0) || r == '\u2028' || r == '\u2029' {
		return ' '
	}
	return r
}

func clip(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// RedactURL reduces a URL to scheme, host and path; without the path for one that
// does not parse.
func RedactURL(u *url.URL) string {
	if u == nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// opaque matches a path segment that may be a credential: long, with letters and
// digits (capability URLs hold one in their path).
var opaque = regexp.MustCompile(`[A-Za-z0-9_~=-]{20,}`)

// RedactPath is [Redact] for an address without query and credentials: segments of
// its path that may be credentials go too.
func RedactPath(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	host, path, _ := strings.Cut(rest, "/")
	if !ok || path == "" {
		return Redact(address, maxAddress)
	}
	path = opaque.ReplaceAllStringFunc(path, func(segment string) string {
		if strings.ContainsAny(segment, "0123456789") && strings.ContainsAny(strings.ToLower(segment), "abcdefghijklmnopqrstuvwxyz") {
			return "[redacted]"
		}
		return segment
	})
	return Redact(scheme+"://"+host+"/"+path, maxAddress)
}

// maxAddress bounds an address in a record, in bytes.
const maxAddress = 512

// RedactType reduces a media type (RFC 9110, section 8.3.1; without parameters) to
// what can be the name of one: a server can write there what it likes.
func RedactType(media string) string {
	kind, name, _ := strings.Cut(media, "/")
	if len(kind) > maxTypePart || odd(kind) {
		return redacted
	}
	if len(name) > maxTypePart || odd(name) {
		return kind + "/" + redacted
	}
	return media
}

// maxTypePart is the most that RFC 6838, section 4.2, advises for each part.
const maxTypePart = 64

// odd reports whether a part of a media type has a long word with digits in it, or
// what no name has.
func odd(part string) bool {
	words := strings.FieldsFunc(part, func(r rune) bool { return strings.ContainsRune(".+-", r) })
	for _, w := range words {
		if len(w) >= 8 && strings.ContainsAny(w, "0123456789") {
			return true
		}
	}
	return strings.ContainsFunc(part, func(r rune) bool { return !isWord(r) && !strings.ContainsRune(".+-_*", r) })
}

// URLOrigin returns scheme and host of a URL (RFC 6454), which is what a redirect is
// reported by.
func URLOrigin(u *url.URL) string {
	if u == nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
