package policy_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// everything is a file that sets each setting.
const everything = `# comment
version: 1
defaults:
  surface: model_protocol
rules:
  - name: all
    server: https://*.example/mcp
    tool: pay_*
    safety: keyed
    trust_annotations: true
    retry:
      repeats: 3
      backoff: 100ms
      backoff_cap: off
      retry_after_cap: 1m30s
      throttled: false
      healed: true
      budget: 2.5
      codes: [-32050, 7]
      statuses: [404]
      outcomes:
        - MALFORMED_JSON
        - TOOL_ERROR
      tool_errors: ["busy: try again"]
      refused_statuses: [529]
      refused_codes: []
    limits: {connect: 3s, headers: off, silence: 1h, attempt: 20s, call: 0.5m}
    breaker: {failures: 7, open: 1m}
    limiter: {rate: 600/m, burst: 20, no_wait: true}
    gate: off
    key: {header: Idempotency-Key, meta: com.example/key, argument: /a/b, guard: off}
    surface: model
    strict: false
    tolerate: [id_form]
    result_types: [task]
    max_result: 64MiB
`

// TestOffIsFalse: what is either true or false is off where it is false.
func TestOffIsFalse(t *testing.T) {
	p := parse(t, "version: 1\nrules:\n  - {session: {heal: off}, strict: off, limits: {progress: off}}\n")
	want := []policy.Rule{{Settings: policy.Settings{
		Session: policy.Session{Heal: new(false)}, Strict: new(false), Limits: policy.Limits{Progress: new(false)},
	}}}
	if err := p.Validate(); err != nil || !reflect.DeepEqual(exported(p), want) {
		t.Errorf("%v, %+v", err, p.Rules)
	}
	if p.Resolve("s", "pay", nil).Limits.Extended() {
		t.Error("progress extends")
	}
}

func TestParse(t *testing.T) {
	want := []policy.Rule{{
		Name: "all", Server: "https://*.example/mcp", Tool: "pay_*",
		Settings: policy.Settings{
			Safety: policy.Keyed, TrustAnnotations: new(true),
			Retry: policy.Retry{
				Repeats: 3, Backoff: 100 * time.Millisecond, BackoffCap: -1, RetryAfterCap: 90 * time.Second,
				Throttled: new(false), Healed: new(true), Budget: 2.5,
				Codes: []int64{-32050, 7}, Statuses: []int{404}, Outcomes: []string{"MALFORMED_JSON", "TOOL_ERROR"}, ToolErrors: []string{"busy: try again"},
				RefusedStatuses: []int{529}, RefusedCodes: []int64{},
			},
			Limits:  policy.Limits{Connect: 3 * time.Second, Headers: -1, Silence: time.Hour, Attempt: 20 * time.Second, Call: 30 * time.Second},
			Breaker: policy.Breaker{Failures: 7, Open: time.Minute},
			Limiter: policy.Limiter{Rate: 10, Burst: 20, NoWait: new(true)},
			Gate:    policy.GateOff,
			Key:     policy.Key{Header: "Idempotency-Key", Meta: "com.example/key", Argument: "/a/b", Guard: -1},
			Surface: policy.SurfaceModel, Strict: new(false), Tolerate: []string{"id_form"}, ResultTypes: []string{"task"}, MaxResult: 64 << 20,
		},
	}, {Name: "defaults", Settings: policy.Settings{Surface: policy.SurfaceModelProtocol}}}
	if got := exported(parse(t, everything)); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// JSON is read by the same reader.
func TestParseJSON(t *testing.T) {
	p := parse(t, "{\n\t\"version\": 1,\n\t\"defaults\": {\"limits\": {\"call\": \"1m\"}},\n\t\"rules\": [\n\t\t{\"tool\": \"*_x\", \"safety\": \"read_only\", \"retry\": {\"repeats\": 1, \"budget\": 1.5, \"statuses\": [404], \"backoff\": \"off\"}}\n\t]\n}\n")
	want := []policy.Rule{
		{Tool: "*_x", Settings: policy.Settings{Safety: policy.ReadOnly, Retry: policy.Retry{Repeats: 1, Budget: 1.5, Statuses: []int{404}, Backoff: -1}}},
		{Name: "defaults", Settings: policy.Settings{Limits: policy.Limits{Call: time.Minute}}},
	}
	if got := exported(p); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

func problemsOf(t testing.TB, err error) []*policy.FileError {
	t.Helper()
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("%T holds no list: %v", err, err)
	}
	var all []*policy.FileError
	for _, e := range joined.Unwrap() {
		var bad *policy.FileError
		if !errors.As(e, &bad) || bad.Line < 1 || bad.Column < 1 || bad.Problem == "" {
			t.Fatalf("a problem without a place: %#v", e)
		}
		all = append(all, bad)
	}
	return all
}

// Each problem is told with its place and with what to do about it.
func TestParseProblems(t *testing.T) {
	const head = "version: 1\nrules:\n  - tool: pay\n    safety: keyed\n    "
	rule := func(s string) string { return head + s + "\n" }
	for _, row := range []struct {
		name, file string
		want       []string // "line:column: part of the message"
	}{
		// The file as a whole.
		{"no version", "rules: []", []string{"1:1: the version is missing: begin with the line version: 1"}},
		{"other version", "version: 2", []string{"1:10: version: this program reads version 1 only"}},
		{"version as text", "version: \"1\"", []string{"1:10: version"}},
		{"unknown name", "version: 1\nrule: []", []string{`2:1: "rule" is not a name of the format; did you mean rules?`}},
		{"a list", "- version: 1", []string{"1:1: not names with values"}},
		{"a word", "hello", []string{"1:1: not names with values"}},
		{"rules as a mapping", "version: 1\nrules:\n  tool: pay", []string{"3:3: rules: not a list"}},
		{"a rule as a word", "version: 1\nrules: [pay]", []string{`2:9: rule "rules[0]": not names with values`}},
		{"no value", "version: 1\nrules:", []string{"2:7: rules: there is no value"}},
		{"second document", "version: 1\n---\nversion: 1\n", []string{"a second document"}},
		{"reference", "version: 1\nrules:\n  - &a {tool: pay, safety: keyed}\n  - *a\n", []string{"3:5: ", "4:5: "}},
		{"merge", rule("<<: {strict: true}"), []string{`5:5: rule "rules[0]": "<<" is not a setting`}},
		{"tag", rule("strict: !!bool true"), []string{"5:13: ", "take !!bool away"}},
		{"mapping as a name", rule("{a: b}: 1"), []string{"5:5: rule \"rules[0]\": a name is a single word"}},
		{"too large", "# " + strings.Repeat("x", policy.LargestFile), []string{"1:1: larger than 4 MiB"}},
		// What is not YAML.
		{"unquoted glob", "version: 1\nrules:\n  - tool: *_x\n    safety: keyed\n", []string{"3:11: not YAML: *_x refers to nothing; a glob that begins with * must be quoted"}},
		{"unquoted star", "version: 1\nrules:\n  - {tool: *, safety: keyed}\n", []string{"3:", "a glob that begins with * must be quoted"}},
		{"open bracket", "version: 1\nrules: [\n  a\n", []string{"2:1: not YAML: did not find expected ',' or ']'"}},
		{"wrong indent", "version: 1\nrules:\n  - tool: pay\n   safety: keyed\n", []string{"3:3: not YAML"}},
		{"tab", "version: 1\nrules:\n\t- tool: pay\n", []string{"3:2: not YAML"}},
		{"colon twice", "version: 1\nrules:\n  - tool: a: b\n", []string{"3:3: not YAML: mapping values are not allowed"}},
		{"not UTF-8", "version: 1\n# \xff\n", []string{"not YAML: invalid"}},
		// Names.
		{"misspelt", rule("safty: keyed"), []string{`5:5: rule "rules[0]": "safty" is not a setting; did you mean safety?`}},
		{"misspelt below", rule("retry: {bakoff: 1s}"), []string{`5:13: rule "rules[0]": retry: "bakoff" is not a setting; did you mean backoff?`}},
		{"other place", rule("repeats: 1"), []string{`5:5: rule "rules[0]": "repeats" is not a setting of this place: write retry: and below it repeats:`}},
		{"dotted", rule("retry.repeats: 1"), []string{"write retry: and below it repeats:"}},
		{"far off", rule("colour: red"), []string{`"colour" is not a setting: there are name, server, tool, safety,`}},
		{"twice", rule("strict: true\n    strict: false"), []string{"6:5: rule \"rules[0]\": strict is there already, on line 5"}},
		{"named rule", "version: 1\nrules:\n  - name: x y\n    colour: red\n    safety: keyed", []string{`4:5: rule "x y": "colour"`}},
		{"in the defaults", "version: 1\ndefaults: {tool: pay, strict: true}", []string{"2:12: defaults: tool is for rules: the defaults are for every tool of every server"}},
		// Values.
		{"duration without unit", rule("limits: {call: 5}"), []string{`5:20: rule "rules[0]": limits.call: "5" is not a duration such as 200ms, 5s or 10m, nor off, which is no limit`}},
		{"rate without unit", rule("limiter: {rate: 10}"), []string{`5:21: rule "rules[0]": limiter.rate: "10" is not a rate such as 10/s`}},
		{"size without unit", rule("max_result: 64"), []string{`"64" is not a size such as 512KiB`}},
		{"size beyond all", rule("max_result: 99999999999GiB"), []string{"is not a size"}},
		{"zero", rule("retry: {repeats: 0}"), []string{"5:22: ", "0 is not above zero: write off, which is no repeat"}},
		{"negative", rule("retry: {backoff: -1s}"), []string{"-1s is not above zero: write off, which is no wait"}},
		{"what cannot be off", rule("breaker: {open: off}"), []string{`"off" is not a duration`}},
		{"zero that cannot be off", rule("limiter: {burst: 0}"), []string{"0 is not above zero: write a whole number"}},
		{"fraction", rule("retry: {repeats: 1.5}"), []string{`"1.5" is not a whole number`}},
		{"hexadecimal", rule("retry: {codes: [0x10]}"), []string{`"0x10" is not a whole number`}},
		{"leading zero", rule("retry: {codes: [010]}"), []string{`"010" is not a whole number`}},
		{"plus", rule("retry: {repeats: +5}"), []string{`"+5" is not a whole number`}},
		{"exponent", rule("retry: {budget: 1e3}"), []string{`"1e3" is not a number`}},
		{"not a number", rule("retry: {budget: .nan}"), []string{`".nan" is not a number`}},
		{"yes", rule("strict: yes"), []string{`"yes" is not true or false`}},
		{"number as text", "version: 1\nrules:\n  - {tool: 7, safety: keyed}", []string{"3:12: rule \"rules[0]\": tool: 7 is not a text: write it in quotes"}},
		{"empty text", "version: 1\nrules:\n  - {tool: '', safety: keyed}", []string{"an empty text sets nothing"}},
		{"word for a list", rule("tolerate: id_form"), []string{"5:15: ", "not a list: write it in brackets"}},
		{"list for a word", rule("surface: [model]"), []string{"write a text"}},
		{"word for a group", rule("key: Idempotency-Key"), []string{"5:10: rule \"rules[0]\": key: not names with values"}},
		{"empty group", rule("key: {}"), []string{"there is nothing below it"}},
		{"no value below", rule("retry:\n      repeats:"), []string{"6:15: rule \"rules[0]\": retry.repeats: there is no value"}},
		{"misspelt word", rule("surface: modle"), []string{`5:14: rule "rules[0]": surface: "modle" is not one of caller`, "did you mean model?"}},
		{"misspelt outcome", rule("retry: {outcomes: [TIMEOUT, NETWORK_EROR]}"), []string{"5:33: ", "did you mean NETWORK_ERROR?"}},
		{"misspelt deviation", rule("tolerate: [id-form]"), []string{"5:16: ", "did you mean id_form?"}},
		// Impossible combinations.
		{"unsafe and repeated on unknown", "version: 1\nrules:\n  - {tool: pay, safety: unsafe, retry: {outcomes: [TIMEOUT]}}", []string{"3:51: ", "an unsafe tool is never repeated for this"}},
		{"repeats without a deadline", rule("limits: {call: off}"), []string{"5:20: rule \"rules[0]\": limits.call: repeats without a deadline"}},
		{"progress without a hard limit", rule("limits: {call: off, attempt: 1s, progress: true}\n    retry: {repeats: off}"), []string{"limits.progress: progress extends an attempt that nothing else bounds"}},
		{"key header on an unsafe tool", "version: 1\nrules:\n  - {tool: pay, safety: unsafe, key: {header: A}}", []string{"3:47: ", "only keyed tools have a key header"}},
		{"a rule that never counts", "version: 1\nrules:\n  - {safety: keyed}\n  - {tool: a, safety: unsafe}", []string{"4:12: rule \"rules[1]\": tool: the rule never counts: rule \"rules[0]\" (f.yaml:3)"}},
		{"a setting that never counts", "version: 1\nrules:\n  - {tool: 'a*', safety: keyed}\n  - {tool: ab, strict: true, safety: unsafe}", []string{"4:38: rule \"rules[1]\": safety: never counts: rule \"rules[0]\" (f.yaml:3)"}},
		{"a rule that sets nothing", "version: 1\nrules:\n  - tool: pay\n  - safety: keyed", []string{"3:11: rule \"rules[0]\": tool: the rule sets nothing"}},
		{"defaults that set nothing", "version: 1\ndefaults: {}", []string{"2:11: defaults: "}},
		{"two rules of a name", "version: 1\nrules:\n  - {name: a, strict: true}\n  - {name: a, safety: keyed}", []string{"4:12: rule \"a\": name: another rule has the same name"}},
		{"a name that is taken", "version: 1\nrules:\n  - {name: defaults, tool: a, strict: true}", []string{"3:12: "}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, err := policy.Parse("f.yaml", []byte(row.file))
			all := problemsOf(t, err)
			if len(all) == 0 || p != nil {
				t.Fatalf("got %+v, %v", p, err)
			}
			text := err.Error()
			for _, want := range row.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q says nothing of %q", text, want)
				}
			}
			if len(all) > 2 {
				t.Errorf("%d problems: %s", len(all), text)
			}
			if !strings.HasPrefix(text, "f.yaml:") {
				t.Errorf("no file: %q", text)
			}
		})
	}
}

// All problems are told at once, in the order of the file.
func TestParseReportsAll(t *testing.T) {
	_, err := policy.Parse("f", []byte(`version: 3
defalts: {}
rules:
  - tool: pay_*
    safty: keyed
    retry:
      repeats: 0
      outcomes: [TIMEOUT, NOPE]
    limits: {call: soon}
  - tool: "x\u0001"
    safety: keyed
  - name: last
    tool: q
    safety: unsafe
    retry: {codes: [1]}
`))
	var got []string
	for _, e := range problemsOf(t, err) {
		got = append(got, fmt.Sprintf("%d:%d %s", e.Line, e.Column, e.Where))
	}
	want := []string{
		"1:10 version", "2:1 ", `5:5 rule "rules[0]"`, `7:16 rule "rules[0]": retry.repeats`, `8:27 rule "rules[0]": retry.outcomes`,
		`9:20 rule "rules[0]": limits.call`, `10:11 rule "rules[1]": tool`, `15:20 rule "last": retry.codes`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// No file, and an empty one, repeat nothing that may have had an effect.
func TestEmptyFile(t *testing.T) {
	for _, file := range []string{"", "\n", "# nothing\n", "---\n", "version: 1", "version: 1\nrules: []\n", "{}", "\ufeffversion: 1\n"} {
		p, err := policy.Parse("f", []byte(file))
		if file == "{}" {
			if err == nil {
				t.Error("a mapping without a version is taken")
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", file, err)
			continue
		}
		got, want := p.Resolve("s", "pay", &policy.Annotations{ReadOnly: true, Idempotent: true}), (*policy.Policy)(nil).Resolve("s", "pay", nil)
		if !reflect.DeepEqual(got, want) || got.Safety != policy.Unsafe {
			t.Errorf("%q: %+v", file, got)
		}
		everyAttempt(func(a policy.Attempt) {
			if d := got.Decide(a, start()); d.Action == policy.Repeat && a.Delivery != observe.NotSent && a.Delivery != observe.Refused {
				t.Fatalf("%q: %+v: %+v", file, a, d)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if _, err := policy.Load(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := policy.Load(t.TempDir()); err == nil {
		t.Error("a folder is taken")
	}
	if err := os.WriteFile(path, []byte(everything), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := policy.Load(path)
	if err != nil || !reflect.DeepEqual(exported(p), exported(parse(t, everything))) {
		t.Errorf("got %+v, %v", p, err)
	}
	if got := settingOf(t, p.Explain("https://a.example/mcp", "pay_x", nil), "safety"); got.Place != path+":9" {
		t.Errorf("got %+v", got)
	}
	if err := os.Truncate(path, policy.LargestFile+1); err != nil {
		t.Fatal(err)
	}
	if _, err := policy.Load(path); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("too large: %v", err)
	}
}

// hostile files are small for what they ask of a reader.
func hostile(size int) map[string]string {
	laughs := "version: 1\na: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'k'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s*%c]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 8), c-1)
	}
	return map[string]string{
		"references":    laughs,
		"open brackets": strings.Repeat("[", size),
		"open braces":   strings.Repeat("{a: ", size/4),
		"dashes":        strings.Repeat("- ", size/2),
		"items":         "version: 1\nrules: [" + strings.Repeat("a,", size/2) + "]",
		"names":         strings.Repeat("a:\n", size/3),
		"settings":      "version: 1\nrules:\n- " + strings.Repeat("b: 1\n  ", size/7),
		"long glob":     "version: 1\nrules: [{tool: '" + strings.Repeat("*?", size/4) + "a', safety: keyed}]",
		"comments":      strings.Repeat("#\n", size/2),
		"long word":     "version: 1\nrules: [{" + strings.Repeat("x", size) + ": 1}]",
		"long name":     "version: 1\nrules: [{name: " + strings.Repeat("x", size/2) + ", " + strings.Repeat("b: 1, ", size/12) + "safety: keyed}]",
		"nested stars":  nestedStars(size),
	}
}

// nestedStars are rules of which each is covered by as many as can be.
func nestedStars(size int) string {
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n")
	for i := 0; b.Len() < size; i++ {
		s := strings.Repeat("a", i)
		fmt.Fprintf(&b, "- {tool: 'b%s*', server: '%s*', safety: keyed}\n", s, s)
	}
	return b.String()
}

func TestHostileFiles(t *testing.T) {
	for name, file := range hostile(128 << 10) {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := policy.Parse("f", []byte(file))
			runtime.ReadMemStats(&after)
			if err == nil && name != "comments" && name != "long glob" {
				t.Error("taken")
			}
			if n := len(problemsOf(t, err)); n > 1000 {
				t.Errorf("%d problems", n)
			}
			if err != nil && len(err.Error()) > 2<<20 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 128 {
				t.Errorf("%d MB", mb)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(everything))
	f.Add([]byte(explained))
	for _, file := range hostile(64) {
		f.Add([]byte(file))
	}
	f.Add([]byte(`{"version": 1, "rules": [{"tool": "*", "safety": "keyed"}]}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		p, err := policy.Parse("f", file)
		if err != nil {
			problemsOf(t, err)
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatalf("read, and not valid: %v", err)
		}
		_ = p.Explain("server", "tool", nil).String()
		written, err := policy.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := policy.Parse("f", written)
		if err != nil || !reflect.DeepEqual(exported(again), exported(p)) {
			t.Fatalf("%v\n%s", err, written)
		}
	})
}
