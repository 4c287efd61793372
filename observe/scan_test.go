package observe_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/surecall/surecall/observe"
	"pgregory.net/rapid"
)

// within puts a JSON text where nothing but its being JSON is judged.
func within(text string) observe.Answer {
	return ok(withResult(`{"content":[],"structuredContent":`+text+`}`), "")
}

func nested(open, close string, n int) string {
	return strings.Repeat(open, n) + strings.Repeat(close, n)
}

func TestJSONText(t *testing.T) {
	long := strings.Repeat("x", 100)
	for _, c := range []struct {
		name, text string
		valid      bool
	}{
		{"empty string", `""`, true},
		{"every short escape", `"\"\\\/\b\f\n\r\t"`, true},
		{"escape of a character", `"\u00e9\uD83D\ude00\uABCDef"`, true},
		{"lone surrogates", `"\ud800 \udc00"`, true},
		{"NUL escaped", `"\u0000"`, true},
		{"DEL", "\"\x7f\"", true},
		{"two, three and four bytes", `"é€😀"`, true},
		{"long with an escape at the end", `"` + long + `\n"`, true},
		{"escape at each place of a word", `"` + `\n` + `1\n` + `12\n` + `123\n` + `1234\n` + `12345\n` + `123456\n` + `1234567\n"`, true},
		{"unknown escape", `"\x"`, false},
		{"escape of a single quote", `"\'"`, false},
		{"short escape of a character", `"\u12"`, false},
		{"escape without hex", `"\u12g4"`, false},
		{"upper case U", `"\U0041"`, false},
		{"line feed in a string", "\"a\nb\"", false},
		{"NUL in a string", "\"\x00\"", false},
		{"control character late in a string", `"` + long + "\x1f\"", false},
		{"single quotes", `'a'`, false},
		{"unclosed string", `"a`, false},
		{"escaped closing quote", `"a\"`, false},

		{"integers", `[0,-0,1,-1,10,9007199254740993]`, true},
		{"fractions and exponents", `[0.0,-0.5,1e5,1E+5,1.25e-5,1e999]`, true},
		{"leading zero", `01`, false},
		{"leading plus", `+1`, false},
		{"no digit before the point", `.5`, false},
		{"no digit after the point", `1.`, false},
		{"no digit in the exponent", `1e`, false},
		{"sign alone in the exponent", `1e+`, false},
		{"minus alone", `-`, false},
		{"hexadecimal", `0x10`, false},
		{"infinity", `Infinity`, false},
		{"NaN", `NaN`, false},

		{"literals", `[true,false,null]`, true},
		{"literal in another case", `True`, false},
		{"literal cut", `tru`, false},
		{"literal too long", `nulll`, false},

		{"empty containers", `[{},[],{ },[ ]]`, true},
		{"white space", " [ 1 ,\n2\t,\r3 ] ", true},
		{"vertical tab", "[1,\v2]", false},
		{"no-break space", "[1,\u00a02]", false},
		{"comma at the end of an array", `[1,]`, false},
		{"comma at the end of an object", `{"a":1,}`, false},
		{"comma alone", `[,]`, false},
		{"no comma", `[1 2]`, false},
		{"no colon", `{"a" 1}`, false},
		{"no value", `{"a":}`, false},
		{"key without quotes", `{a:1}`, false},
		{"key a number", `{1:1}`, false},
		{"mixed brackets", `[1}`, false},
		{"comment", `[1/**/]`, false},
		{"nothing", ``, false},
		{"key with an escape", `{"\u0061\n":1}`, true},
		{"key with a bad escape", `{"\q":1}`, false},

		{"depth 1000", nested("[", "]", 998), true}, // within response and result
		{"depth 1001", nested("[", "]", 999), false},
		{"depth within the limit, no value", nested(`{"a":`, "}", 997), false},
		{"depth 1001, objects", strings.Repeat(`{"a":`, 999) + "1" + strings.Repeat("}", 999), false},
		{"depth 1000 of objects", strings.Repeat(`{"a":`, 998) + "1" + strings.Repeat("}", 998), true},
		{"brackets in strings do not count", `"` + strings.Repeat("[", 2000) + `"`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := observe.Classify(within(c.text), nil)
			if c.valid {
				expect(t, v, observe.ToolSuccess, observe.Answered)
			} else {
				expect(t, v, observe.MalformedJSON, observe.Unknown)
			}
		})
	}
}

func TestJSONDocument(t *testing.T) {
	for _, c := range []struct{ name, body, reason string }{
		{"byte order mark", "\xEF\xBB\xBF" + good, "byte order mark"},
		{"a second document", good + good, "text after"},
		{"a bracket behind", good + "}", "text after"},
		{"NUL behind", good + "\x00", "text after"},
		{"cut", good[:len(good)-1], "cut short"},
		{"cut in a string", good[:12], "cut short"},
		{"cut in an escape", `"\u00`, "cut short"},
		{"HTML", "<!DOCTYPE html>", "not valid JSON"},
		{"plain text", "upstream connect error", "not valid JSON"},
		{"an event stream", "event: message\ndata: " + good, "not valid JSON"},
		{"control character", "\"\x01\"", "control character"},
		{"bad escape", `"\x41"`, "escape"},
		{"deep", nested("[", "]", 1001), "1000"},
		{"UTF-16", "{\x00\"\x00", "not valid JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := observe.Classify(ok(c.body, ""), nil)
			expect(t, v, observe.MalformedJSON, observe.Unknown)
			if !strings.Contains(v.Reason, c.reason) {
				t.Errorf("reason %q, want one with %q", v.Reason, c.reason)
			}
		})
	}
}

// Each prefix of a good answer is cut, and none of them is one.
func TestJSONCut(t *testing.T) {
	for n := range len(good) {
		v := observe.Classify(ok(good[:n], ""), nil)
		if v.Outcome.Answered() || n > 0 && !strings.Contains(v.Reason, "cut short") {
			t.Errorf("%q: %s (%s)", good[:n], v.Outcome, v.Reason)
		}
	}
}

func TestInvalidUTF8(t *testing.T) {
	tolerant := &observe.Reading{Strict: true, Tolerate: []observe.Deviation{observe.DeviationInvalidUTF8}}
	for _, c := range []struct{ name, text string }{
		{"Latin-1", "\"caf\xe9\""},
		{"late in a long string", `"` + strings.Repeat("é", 100) + "\xff\""},
		{"within a long string", `"` + strings.Repeat("x", 50) + "\xff" + strings.Repeat("x", 50) + `"`},
		{"overlong", "\"\xc0\xaf\""},
		{"surrogate", "\"\xed\xa0\x80\""},
		{"beyond Unicode", "\"\xf4\x90\x80\x80\""},
		{"cut by the quote", "\"\xe2\x82\""},
		{"cut by an escape", "\"\xe2\\u0041\x82\xac\""},
		{"in a key", "{\"\xff\":1}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect(t, observe.Classify(within(c.text), nil), observe.MalformedJSON, observe.Unknown, observe.DeviationInvalidUTF8)
			expect(t, observe.Classify(within(c.text), tolerant), observe.ToolSuccess, observe.Answered, observe.DeviationInvalidUTF8)
		})
	}
	expect(t, observe.Classify(within("\xff"), tolerant), observe.MalformedJSON, observe.Unknown)
}

// Texts made of JSON's own pieces are valid here where encoding/json says so.
func TestJSONTextIsWhatEncodingJSONSays(t *testing.T) {
	pieces := []string{
		`{`, `}`, `[`, `]`, `,`, `:`, `"`, `\`, `"a":`, `"b"`, `1`, `-`, `0`, `.5`, `e`, `E+2`, `true`, `null`, ` `, "\n",
		`\u00e9`, `\ud800`, `\n`, `abcdefgh`, "é", "😀", "\x01", "\xff", "\xe2\x82", "x",
	}
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), "")
	})
	rapid.Check(t, func(t *rapid.T) {
		body := text.Draw(t, "text")
		if rapid.Bool().Draw(t, "quoted") {
			body = `"` + body + `"`
		}
		v := observe.Classify(within(body), nil)
		// What breaks out of its place makes another document: ask about the whole.
		whole := string(within(body).Body)
		if want := json.Valid([]byte(whole)) && utf8.ValidString(whole); (v.Outcome != observe.MalformedJSON) != want {
			t.Fatalf("%q: %s (%s), encoding/json and unicode/utf8 say %v", body, v.Outcome, v.Reason, want)
		}
	})
}
