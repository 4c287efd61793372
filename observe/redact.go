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
	`private[_-]?key|client[_-]?secret|credentials?|session[_-]?id|signature|\bsig)["'\\]*\s*[:=]\s*\[?\s*`

// secrets are the shapes of credentials that servers and networks are known to
// echo. Each is replaced by "[redacted]", keeping its first group.
var secrets = []*regexp.Regexp{
	// Authorization values: scheme and credentials (RFC 9110, section 11.4).
	regexp.MustCompile(`(?i)\b((?:bearer|basic|digest|token)\s+)[A-Za-z0-9\-._~+/=]{6,}`),
	// JSON Web Tokens (RFC 7519).
	regexp.MustCompile(`()\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{2,}(?:\.[A-Za-z0-9_-]*)?`),
	// Cloud, payment, chat and repository keys by their published prefixes.
	regexp.MustCompile(`()\b(?:AKIA|ASIA)[A-Z0-9]{12,}`),
	regexp.MustCompile(`()\b(?:sk|pk|rk|whsec)_(?:live_|test_)?[A-Za-z0-9]{8,}`),
	regexp.MustCompile(`()\bsk-[A-Za-z0-9_-]{12,}`),
	regexp.MustCompile(`()\b(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|npm_|AIza)[A-Za-z0-9_-]{8,}`),
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
// after max bytes on a character's border.
func Redact(text string, max int) string {
	// Credentials are looked for before the cut, so that none is cut in half, but
	// not far beyond it.
	text = clip(text, 4*max+1024)
	text = strings.Map(printable, strings.ToValidUTF8(text, "\uFFFD"))
	for _, re := range secrets {
		text = re.ReplaceAllString(text, "${1}[redacted]")
	}
	return strings.TrimSpace(clip(text, max))
}

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

// URLOrigin returns scheme and host of a URL (RFC 6454), which is what a redirect is
// reported by.
func URLOrigin(u *url.URL) string {
	if u == nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
