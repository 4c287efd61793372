package policy_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

const explained = `version: 1
defaults:
  limits: {call: 1m}
rules:
  - name: payments
    tool: pay_*
    safety: keyed
    key:
      header: Idempotency-Key
    retry: {refused_statuses: [529], tool_errors: [busy, "try, again"], codes: [-32050]}
  - server: bank
    limiter: {rate: 100/m}
    max_result: off
  - {name: trusted, server: kiosk, trust_annotations: true}
`

func parse(t testing.TB, file string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("policy.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func settingOf(t *testing.T, e *policy.Explanation, name string) policy.ExplainedSetting {
	t.Helper()
	i := slices.IndexFunc(e.Settings, func(s policy.ExplainedSetting) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no %s", name)
	}
	return e.Settings[i]
}

func TestExplainSettings(t *testing.T) {
	p := parse(t, explained)
	readOnly := &policy.Annotations{ReadOnly: true}
	for _, row := range []struct {
		server, tool, setting string
		want                  policy.ExplainedSetting
	}{
		{"bank", "pay_bill", "safety", policy.ExplainedSetting{Value: "keyed", Source: "payments", Place: "policy.yaml:7"}},
		{"bank", "pay_bill", "key.header", policy.ExplainedSetting{Value: "Idempotency-Key", Source: "payments", Place: "policy.yaml:9"}},
		{"bank", "pay_bill", "retry.refused_statuses", policy.ExplainedSetting{Value: "[529]", Source: "payments", Place: "policy.yaml:10"}},
		{"bank", "pay_bill", "retry.tool_errors", policy.ExplainedSetting{Value: `["busy", "try, again"]`, Source: "payments", Place: "policy.yaml:10"}},
		{"bank", "pay_bill", "limits.call", policy.ExplainedSetting{Value: "1m", Source: "defaults", Place: "policy.yaml:3"}},
		{"bank", "pay_bill", "limiter.rate", policy.ExplainedSetting{Value: "100/m", Source: "rules[1]", Place: "policy.yaml:12"}},
		{"bank", "pay_bill", "limiter.burst", policy.ExplainedSetting{Value: "1", Source: "default"}},
		{"bank", "pay_bill", "max_result", policy.ExplainedSetting{Value: "off", Source: "rules[1]", Place: "policy.yaml:13"}},
		{"bank", "pay_bill", "retry.backoff", policy.ExplainedSetting{Value: "200ms", Source: "default"}},
		{"bank", "pay_bill", "limits.headers", policy.ExplainedSetting{Value: "off", Source: "default"}},
		{"bank", "pay_bill", "limits.progress", policy.ExplainedSetting{Value: "false", Source: "default"}},
		{"bank", "pay_bill", "tolerate", policy.ExplainedSetting{Value: "none", Source: "default"}},
		{"shop", "send", "safety", policy.ExplainedSetting{Value: "unsafe", Source: "default"}},
		{"shop", "send", "max_result", policy.ExplainedSetting{Value: "64MiB", Source: "default"}},
		{"shop", "send", "key.meta", policy.ExplainedSetting{Value: "io.github.surecall/idempotency-key", Source: "default"}},
		{"kiosk", "send", "safety", policy.ExplainedSetting{Value: "read_only", Source: "annotations"}},
	} {
		row.want.Name = row.setting
		if got := settingOf(t, p.Explain(row.server, row.tool, readOnly), row.setting); got != row.want {
			t.Errorf("%s/%s: got %+v, want %+v", row.server, row.tool, got, row.want)
		}
	}
}

// Every setting is explained, with what Source says and with a value of its own where
// a rule sets it.
func TestExplainEverySetting(t *testing.T) {
	for _, name := range policy.Fields() {
		rapid.Check(t, func(t *rapid.T) {
			r := policy.Rule{Name: "r", Settings: policy.Settings{Safety: policy.Keyed, Limiter: policy.Limiter{Rate: 1}}}
			v := policy.SettingAt(&r.Settings, name)
			v.Set(anyValue(t, v.Type(), memberAt(name), name))
			p := &policy.Policy{Rules: []policy.Rule{r}}
			if p.Validate() != nil {
				return
			}
			e, tool := p.Explain("s", "t", nil), p.Resolve("s", "t", nil)
			var names []string
			for _, s := range e.Settings {
				names = append(names, s.Name)
				if s.Source != tool.Source(s.Name) || s.Value == "" {
					t.Fatalf("%+v, from %q", s, tool.Source(s.Name))
				}
				empty := v.Kind() == reflect.Slice && v.Len() == 0 || v.Kind() == reflect.Map && v.Len() == 0
				if s.Name == name && (s.Source != "r" || s.Value == "none" && !empty) {
					t.Fatalf("%+v", s)
				}
			}
			if !slices.Equal(names, policy.Fields()) {
				t.Fatalf("explained %q", names)
			}
		})
	}
}

// The table names every outcome, and says what Decide says.
func TestExplainDecisions(t *testing.T) {
	p := parse(t, explained)
	for _, row := range []struct {
		tool, when string // an outcome, and the detail to look for
		action     policy.Action
		wait       time.Duration // the longest; 0 is at once
		delivery   observe.Delivery
		rule       string
		place      string
	}{
		{"pay_bill", "NETWORK_ERROR before sending", policy.Repeat, 200 * time.Millisecond, observe.NotSent, "default", ""},
		{"pay_bill", "HTTP_ERROR 408, 500, 502-504, 520-524", policy.Repeat, 200 * time.Millisecond, observe.Unknown, "payments", "policy.yaml:7"},
		{"pay_bill", "HTTP_ERROR 409", policy.Repeat, 200 * time.Millisecond, observe.Unknown, "payments", "policy.yaml:7"},
		{"pay_bill", "HTTP_ERROR 422", policy.Stop, 0, observe.Unknown, "default", ""},
		{"pay_bill", "HTTP_ERROR 529", policy.Repeat, 200 * time.Millisecond, observe.Refused, "payments", "policy.yaml:10"},
		{"pay_bill", "JSONRPC_ERROR -32050", policy.Repeat, 200 * time.Millisecond, observe.Answered, "payments", "policy.yaml:10"},
		{"pay_bill", `TOOL_ERROR with "busy"`, policy.Repeat, 200 * time.Millisecond, observe.Answered, "payments", "policy.yaml:10"},
		{"pay_bill", "SESSION_LOST, renewed", policy.Repeat, 0, observe.Refused, "payments", "policy.yaml:7"},
		{"send", "HTTP_ERROR 425, 429", policy.Repeat, 200 * time.Millisecond, observe.Refused, "default", ""},
		{"send", "HTTP_ERROR 408, 500, 502-504, 520-524", policy.Stop, 0, observe.Unknown, "default", ""},
		{"send", "STREAM_INCOMPLETE", policy.Stop, 0, observe.Unknown, "default", ""},
		{"send", "MALFORMED_JSON", policy.Stop, 0, observe.Unknown, "default", ""},
		{"send", "INPUT_REQUIRED", policy.Stop, 0, observe.Answered, "default", ""},
	} {
		e := p.Explain("bank", row.tool, nil)
		i := slices.IndexFunc(e.Decisions, func(d policy.ExplainedDecision) bool { return strings.Contains(d.When, row.when) })
		if i < 0 {
			t.Errorf("%s: no row of %s in\n%s", row.tool, row.when, e)
			continue
		}
		d := e.Decisions[i]
		if d.Decision.Action != row.action || d.Decision.Wait.Round(time.Microsecond) != row.wait || d.Delivery != string(row.delivery) ||
			d.Decision.Rule != row.rule || d.Place != row.place || d.Decision.Reason == "" {
			t.Errorf("%s: %s: got %+v", row.tool, row.when, d)
		}
	}
}

func TestExplainNamesEveryOutcome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := anyValidPolicy(t).Explain("server", "pay", nil)
		var all strings.Builder
		for _, d := range e.Decisions {
			all.WriteString(d.When + "\n")
			if d.Decision.Action == policy.Repeat && d.Decision.Rule == "" || d.Decision.Reason == "" {
				t.Fatalf("%+v", d)
			}
		}
		for _, o := range observe.Outcomes() {
			if !strings.Contains(all.String(), string(o)) {
				t.Fatalf("nothing of %s", o)
			}
		}
	})
}

func TestExplanationText(t *testing.T) {
	text := parse(t, explained).Explain("bank", "pay_bill", nil).String()
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 || strings.TrimRight(line, " \n") != strings.TrimRight(line, "\n") {
			t.Errorf("%d columns, or spaces at the end: %q", n, line)
		}
	}
	for _, want := range []string{
		`The policy for tool "pay_bill" of server "bank"`,
		"safety                  keyed                   policy.yaml:7 payments\n",
		"limiter.rate            100/m                   policy.yaml:12\n",
		"limits.connect          10s                     default\n",
		"retry.tool_errors       [\"busy\", \"try, again\"]  policy.yaml:10 payments\n",
		"key.meta                io.github.surecall/idempotency-key\n                                                default\n",
		"HTTP_ERROR 408, 500, 502-504, 520-524 (unknown)\n    repeat after at most 200ms: a passing failure of the server or a gateway\n    [safety, policy.yaml:7 payments]\n",
		"CANCELED (not_sent)\n    stop: the caller gave up\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	var none *policy.Policy
	if text := none.Explain("", "t", nil).String(); !strings.Contains(text, "safety                  unsafe                  default\n") {
		t.Errorf("without a policy:\n%s", text)
	}
}

func TestLint(t *testing.T) {
	p := parse(t, `version: 1
defaults: {surface: model}
rules:
  - {name: reads, tool: get_*, safety: read_only}
  - {tool: list_*, safety: read_only}
  - {name: elsewhere, server: shop, tool: buy, safety: keyed}
  - {name: trusted, tool: "*_x", trust_annotations: true}
`)
	tools := []policy.ListedTool{
		{Name: "get_a"}, {Name: "pay"},
		{Name: "see_x", Annotations: &policy.Annotations{ReadOnly: true}},
		{Name: "see_y", Annotations: &policy.Annotations{ReadOnly: true}},
	}
	var got []string
	for _, w := range p.Lint("bank", tools) {
		got = append(got, w.String())
	}
	want := []string{
		`policy.yaml:5: rule "rules[1]": matches none of the server's tools`,
		"tool pay: no rule sets its safety, so it is unsafe",
		"tool see_y: no rule sets its safety, so it is unsafe",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := p.Lint("bank", nil); len(got) != 3 { // reads, rules[1], trusted: those for certain tools
		t.Errorf("no tools: %v", got)
	}
	if got := (*policy.Policy)(nil).Lint("bank", tools[:1]); len(got) != 1 {
		t.Errorf("no policy: %v", got)
	}
}
