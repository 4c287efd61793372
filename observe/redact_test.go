package observe_test

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/surecall/surecall/observe"
)

func TestRedactSecrets(t *testing.T) {
	const secret = "s3cr3tValue0123456789"
	for _, text := range []string{
		"Authorization: Bearer " + secret,
		"bearer " + secret + " is expired",
		`{"authorization":"Basic ` + secret + `"}`,
		"token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0." + secret,
		"eyJhbGciOiJIUzI1NiJ9.eyJ" + secret + ".sig",
		"key AKIAS3CR3TVALUE01234567 leaked",
		"sk_live_" + secret,
		"rk_test_" + secret,
		"sk-proj-" + secret,
		"ghp_" + secret, "github_pat_" + secret, "glpat-" + secret, "xoxb-" + secret, "npm_" + secret, "AIza" + secret,
		"password=" + secret + "&user=a",
		`"api_key": "` + secret + `"`,
		"api-key:" + secret,
		"client_secret='" + secret + "'",
		"Cookie: " + secret,
		"Set-Cookie: session_id=" + secret + "; Path=/",
		"dial https://user:" + secret + "@host/path",
		"GET https://host/path?sig=" + secret,
		"see https://host/?" + secret,
		`{"password": "correct horse ` + secret + ` staple"}`,
		`{\"password\":\"two words ` + secret + `\"}`,
		`{"access_token":["` + secret + `"]}`,
		"Authorization: ApiKey " + secret,
		"Cookie: a=1; session=" + secret,
		"passphrase=" + secret, `"pass":"` + secret + `"`, "AccountKey=" + secret,
		"https://user:p@ss/" + secret + "@host/path",
		"-----BEGIN RSA PRIVATE KEY-----\n" + secret + "\n-----END RSA PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----\n" + secret,
	} {
		got := observe.Redact(text, 500)
		if strings.Contains(got, secret) || strings.Contains(got, "S3CR3TVALUE") {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestRedactKeepsPlainText(t *testing.T) {
	for _, text := range []string{
		"date must be ISO 8601", "table locked: orders", "tool not found: pay", "https://host/path is down",
	} {
		if got := observe.Redact(text, 500); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestRedactForm(t *testing.T) {
	if got := observe.Redact("a\x1b[31mb\r\nc\u2028d\u009be", 100); strings.ContainsAny(got, "\x1b\r\n\u2028\u009b") {
		t.Errorf("control characters in %q", got)
	}
	if got := observe.Redact("bad \xff byte", 100); !utf8.ValidString(got) {
		t.Errorf("%q is not UTF-8", got)
	}
	long := strings.Repeat("ä", 1000)
	if got := observe.Redact(long, 51); len(got) > 51 || !utf8.ValidString(got) {
		t.Errorf("%d bytes, valid %t", len(got), utf8.ValidString(got))
	}
	if got := observe.Redact(strings.Repeat("x", 195)+" Bearer abcdefghijklmnop", 205); strings.Contains(got, "abc") {
		t.Errorf("a secret cut by the limit shows: %q", got)
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("Bearer abcdef", 10)
	f.Fuzz(func(t *testing.T, text string, max int) {
		max = max & 0xfff
		got := observe.Redact(text, max)
		if len(got) > max || !utf8.ValidString(got) {
			t.Errorf("%d bytes of %d: %q", len(got), max, got)
		}
	})
}

func TestRedactURL(t *testing.T) {
	u, err := url.Parse("https://user:pw@host:8443/mcp?token=1#frag")
	if err != nil {
		t.Fatal(err)
	}
	if got := observe.RedactURL(u); got != "https://host:8443/mcp" {
		t.Errorf("RedactURL = %s", got)
	}
	if got := observe.URLOrigin(u); got != "https://host:8443" {
		t.Errorf("URLOrigin = %s", got)
	}
	if observe.RedactURL(nil) != "" || observe.URLOrigin(nil) != "" {
		t.Error("nil has a URL")
	}
}
