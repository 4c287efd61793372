package observe_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/surecall/surecall/observe"
)

func TestRedactorFindsWhatTheCallCarried(t *testing.T) {
	r := observe.NewRedactor("opaque.key/7", "abc", "").HideJSON([]byte(`{
		"name": "pay", "_meta": {"v": "2026-07-28"},
		"arguments": {"note": "my \"blue\" umbrella", "pin": 90210, "list": [{"deep": "äöü-geheim"}], "ok": true, "short": "EUR"}
	}`), "name", "_meta")
	for text, want := range map[string]string{
		"key opaque.key/7 is taken":             "key [redacted] is taken",
		"key opaque.key%2F7 is taken":           "key [redacted] is taken",
		"abc is too short":                      "abc is too short",
		`no "my \"blue\" umbrella" here`:        `no "[redacted]" here`,
		`no my "blue" umbrella here`:            `no [redacted] here`,
		`no my "blue" umb...`:                   `no [redacted]...`,
		"pin 90210 wrong, 902101 too":           "pin [redacted] wrong, 902101 too",
		"äöü-geheim?":                           "[redacted]?",
		"tool pay, version 2026-07-28, in EUR":  "tool pay, version 2026-07-28, in EUR",
		"opaque.key/7opaque.key/7 token=x12345": "[redacted] token=[redacted]",
		"password=90210":                        "password=[redacted]",
		"my \x1b\"blue\" umbrella":              `my  "blue" umbrella`,
	} {
		if got := r.Text(text, 500); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if got := r.HideEmail().Text("ask jo.doe+x@mail.example.org or 90210", 500); got != "ask [redacted] or [redacted]" {
		t.Errorf("e-mail: %q", got)
	}
	if got := observe.Redact("ask jo@example.org", 500); got != "ask jo@example.org" {
		t.Errorf("an e-mail address is redacted without being asked: %q", got)
	}
}

// TestRedactIsStable: what was redacted once stays as it is.
func TestRedactIsStable(t *testing.T) {
	for _, text := range []string{
		"token=[abcdef12345]", `{"password":"x y z","a":1}`, "https://u:p@h/?q=1", "Authorization: Bearer abcdefghi",
	} {
		once := observe.Redact(text, 500)
		if twice := observe.Redact(once, 500); twice != once {
			t.Errorf("%q, then %q, then %q", text, once, twice)
		}
	}
}

func FuzzRedactor(f *testing.F) {
	f.Add("a secret value", "no secret value here", `{"a":["b"]}`)
	f.Fuzz(func(t *testing.T, value, text, document string) {
		got := observe.NewRedactor(value).HideJSON([]byte(document)).Text(text, 300)
		if len(got) > 300 || !utf8.ValidString(got) {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	})
}

func TestRedactPath(t *testing.T) {
	for address, want := range map[string]string{
		"https://h/mcp": "https://h/mcp",
		"https://h":     "https://h",
		"":              "",
		"shop":          "shop",
		"https://h/s/5f2c81e09ab34d6f9e7712c40d8a6b13/mcp":    "https://h/s/[redacted]/mcp",
		"https://h/550e8400-e29b-41d4-a716-446655440000":      "https://h/[redacted]",
		"https://h/a-perfectly-harmless-path-of-words":        "https://h/a-perfectly-harmless-path-of-words",
		"https://h/sk_live_" + strings.Repeat("x", 10) + "/a": "https://h/sk_[redacted]/a",
	} {
		got := observe.RedactPath(address)
		if strings.Contains(want, "sk_") {
			if strings.Contains(got, "xxxx") {
				t.Errorf("%q became %q", address, got)
			}
			continue
		}
		if got != want {
			t.Errorf("%q became %q, want %q", address, got, want)
		}
	}
}

func TestRedactType(t *testing.T) {
	for media, want := range map[string]string{
		"text/html":                "text/html",
		"application/problem+json": "application/problem+json",
		"application/vnd.openxmlformats-officedocument.wordprocessingml.document": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
		"text/sk_live_zq7rk2vw9xt4":       "text/[redacted]",
		"zq7rk2vw9xt4/plain":              "[redacted]",
		"text/a b":                        "text/[redacted]",
		"text/" + strings.Repeat("x", 65): "text/[redacted]",
	} {
		if got := observe.RedactType(media); got != want {
			t.Errorf("%q became %q, want %q", media, got, want)
		}
	}
}

// TestModelReadsLess: the model's text leaves out what an operator may see.
func TestModelReadsLess(t *testing.T) {
	for message, want := range map[string]string{
		"date must be ISO 8601":                                      "date must be ISO 8601",
		"cannot reach http://10.0.0.7:9200/orders":                   "cannot reach [address]",
		"dial tcp 10.1.2.3:5432: refused":                            "dial tcp [address]: refused",
		"no route to db.internal.test:5432":                          "no route to [address]",
		"ask jo@example.org":                                         "ask [redacted]",
		"open /srv/app/secrets.yaml: denied":                         "open [address]: denied",
		"boom\n    at com.shop.Pay.run(Pay.java:7)":                  "boom",
		"Traceback (most recent call last): File x":                  "",
		"<b>no</b> <script src=x>":                                   "no",
		"limit is 3/5 per day and/or 10 per week, see version 1.2.3": "limit is 3/5 per day and/or 10 per week, see version 1.2.3",
	} {
		e := observe.NewError(observe.Error{Outcome: observe.JSONRPCError, Delivery: observe.Answered, Tool: "pay", RPC: &observe.RPCError{Code: 1, Message: message}}, nil, nil)
		if text := e.ModelText(); !strings.Contains(text, "(code 1: \""+want+"\")") {
			t.Errorf("%q is told as %s", message, text)
		}
	}
	e := observe.NewError(observe.Error{Outcome: observe.JSONRPCError, Tool: "pay", RPC: &observe.RPCError{Code: 1, Message: "no blue umbrella"},
		Redactor: observe.NewRedactor("blue umbrella")}, nil, nil)
	for _, text := range []string{e.Error(), e.ModelText()} {
		if strings.Contains(text, "umbrella") {
			t.Errorf("an argument shows: %s", text)
		}
	}
}
