package policy_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

func sample(t testing.TB, name string) *policy.Policy {
	t.Helper()
	p, err := policy.Load(filepath.Join("samples", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Every sample is read, fits the schema, and comes back from a file written anew.
func TestSamples(t *testing.T) {
	paths, err := filepath.Glob("samples/*")
	if err != nil || len(paths) < 4 {
		t.Fatalf("%q, %v", paths, err)
	}
	s := schema(t)
	for _, path := range paths {
		file := read(t, path)
		if err := fits(s, []byte(file)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		written, err := policy.Marshal(sample(t, strings.TrimSuffix(filepath.Base(path), ".yaml")))
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := policy.Parse(path, written); err != nil {
			t.Errorf("%s, written anew: %v", path, err)
		}
		for i, line := range strings.Split(file, "\n") {
			if len(line) > 88 {
				t.Errorf("%s:%d is %d columns wide", path, i+1, len(line))
			}
		}
	}
}

// What the samples' comments say.
func TestSamplesMean(t *testing.T) {
	unavailable := http(503, observe.Unknown)
	overload := http(529, observe.Unknown)
	throttled := http(429, observe.Refused)
	rebuilding := policy.Attempt{Outcome: observe.ToolError, Delivery: observe.Answered, ToolErrorText: "the index is being rebuilt, come back"}
	for _, row := range []struct {
		sample, server, tool string
		safety               policy.Safety
		attempt              policy.Attempt
		want                 policy.Action
		rule                 string
	}{
		{"read_mostly", "any", "search_web", policy.ReadOnly, unavailable, policy.Repeat, "search"},
		{"read_mostly", "any", "search_web", policy.ReadOnly, rebuilding, policy.Repeat, "search"},
		{"read_mostly", "any", "get_page", policy.ReadOnly, rebuilding, policy.Stop, "default"},
		{"read_mostly", "any", "set_title", policy.Idempotent, unavailable, policy.Repeat, "titles"},
		{"read_mostly", "any", "write_note", policy.Unsafe, unavailable, policy.Stop, "default"},
		{"read_mostly", "https://notes.internal.example/mcp", "see", policy.ReadOnly, unavailable, policy.Repeat, "annotations"},
		{"read_mostly", "any", "see", policy.Unsafe, unavailable, policy.Stop, "default"},

		{"payments", "bank", "pay_bill", policy.Keyed, unavailable, policy.Repeat, "payments with a key"},
		{"payments", "bank", "pay_bill", policy.Keyed, overload, policy.Repeat, "payments with a key"},
		{"payments", "bank", "refund", policy.Keyed, unavailable, policy.Repeat, "refunds"},
		{"payments", "bank", "notify_user", policy.Unsafe, unavailable, policy.Stop, "notices"},
		{"payments", "bank", "notify_user", policy.Unsafe, throttled, policy.Repeat, "default"},
		{"payments", "shop", "pay_bill", policy.Unsafe, unavailable, policy.Stop, "default"},

		{"gateway", "https://files.corp.example/mcp", "see", policy.ReadOnly, unavailable, policy.Repeat, "annotations"},
		{"gateway", "https://files.corp.example/mcp", "send", policy.ReadOnly, throttled, policy.Repeat, "ours"},
		{"gateway", "https://stranger.example/mcp", "send", policy.Unsafe, throttled, policy.Stop, "default"},
		{"gateway", "https://stranger.example/mcp", "get_it", policy.ReadOnly, throttled, policy.Repeat, "gets"},
		{"gateway", "warehouse", "move", policy.Unsafe, http(502, observe.Unknown), policy.Repeat, "warehouse"},
		{"gateway", "warehouse", "move", policy.Unsafe, rpc(-32050, observe.Answered), policy.Repeat, "warehouse"},
		{"gateway", "warehouse", "move", policy.Unsafe, unavailable, policy.Stop, "default"},
		{"gateway", "https://weather.example/mcp", "get_rain", policy.ReadOnly, unavailable, policy.Repeat, "weather"},

		{"ten_lines", "any", "get_it", policy.ReadOnly, unavailable, policy.Repeat, "rules[0]"},
		{"ten_lines", "any", "set_it", policy.Idempotent, unavailable, policy.Repeat, "rules[1]"},
		{"ten_lines", "any", "pay_it", policy.Keyed, unavailable, policy.Repeat, "rules[2]"},
		{"ten_lines", "any", "send_mail", policy.Unsafe, unavailable, policy.Stop, "default"},
	} {
		tool := sample(t, row.sample).Resolve(row.server, row.tool, &policy.Annotations{ReadOnly: true})
		d := declared(tool, row.attempt, start())
		if tool.Safety != row.safety || d.Action != row.want || d.Rule != row.rule {
			t.Errorf("%s: %s/%s: safety %s; after %s %d: %+v", row.sample, row.server, row.tool, tool.Safety, row.attempt.Outcome, row.attempt.Status, d)
		}
	}
	if got := sample(t, "payments").Resolve("bank", "notify_user", nil); got.Key.Guard != 24*time.Hour || got.Limiter.Rate != 2 || got.Limiter.Burst != 10 {
		t.Errorf("payments: %+v", got)
	}
	if got := sample(t, "payments").Resolve("bank", "refund", nil); got.Key.Argument != "/refund/idempotency_key" || got.Key.Header != "" {
		t.Errorf("payments: %+v", got.Key)
	}
	if got := sample(t, "gateway").Resolve("ledger", "see", nil); !got.Reading.Strict || got.Surface != policy.SurfaceModelProtocol || got.MaxResult != 8<<20 {
		t.Errorf("gateway: %+v", got)
	}
}

// declared decides as the middleware does: what the operator declares comes first.
func declared(t *policy.Tool, a policy.Attempt, s policy.State) policy.Decision {
	if d, says := t.Declares(a.Outcome, a.Status, a.Code, a.HasCode); says {
		a.Delivery = d
	}
	return t.Decide(a, s)
}

// The article's table of advice, row by row: what is observed, whether it is repeated
// automatically, and on what conditions.
func TestArticle(t *testing.T) {
	p := sample(t, "article")
	const (
		read     = "get_balance"
		payment  = "pay_bill"
		write    = "db_write_row"
		notice   = "notify_user"
		keyedPay = "keyed_pay_bill"
	)
	resolve := func(tool string) *policy.Tool { return p.Resolve("server", tool, nil) }
	decide := func(tool string, a policy.Attempt, change ...func(*policy.State)) policy.Decision {
		s := start()
		s.Remaining = time.Minute
		for _, f := range change {
			f(&s)
		}
		return declared(resolve(tool), a, s)
	}
	repeats := func(t *testing.T, a policy.Attempt, tools ...string) {
		t.Helper()
		for _, tool := range tools {
			if d := decide(tool, a); d.Action != policy.Repeat {
				t.Errorf("%s after %+v: %+v", tool, a, d)
			}
		}
	}
	stops := func(t *testing.T, a policy.Attempt, tools ...string) {
		t.Helper()
		for _, tool := range tools {
			if d := decide(tool, a); d.Action != policy.Stop {
				t.Errorf("%s after %+v: %+v", tool, a, d)
			}
		}
	}
	everyTool := []string{read, payment, write, notice, keyedPay, "other"}

	t.Run("HTTP 503 o fallo temporal de red", func(t *testing.T) { // Condicional
		for _, a := range []policy.Attempt{http(503, observe.Unknown), ended(observe.NetworkError, observe.Unknown), ended(observe.StreamIncomplete, observe.Unknown)} {
			repeats(t, a, read, keyedPay)                // a read without effects, or idempotent
			stops(t, a, payment, write, notice, "other") // where the effects are uncertain
			spent := func(s *policy.State) { s.Repeats = 2 }
			late := func(s *policy.State) { s.Remaining = time.Millisecond }
			if d := decide(read, a, spent); d.Action != policy.Stop {
				t.Errorf("attempts are not limited: %+v", d)
			}
			if d := decide(read, a, late); d.Action != policy.Stop {
				t.Errorf("time is not limited: %+v", d)
			}
		}
		if got := resolve(read).Limits.Call; got != time.Minute {
			t.Errorf("a call has %v", got)
		}
		repeats(t, ended(observe.NetworkError, observe.NotSent), everyTool...) // certain that there was no effect
	})
	t.Run("HTTP 429 por límite de tasa", func(t *testing.T) { // Condicional
		a := http(429, observe.Refused)
		repeats(t, a, everyTool...)
		for _, tool := range everyTool {
			if d := decide(tool, a); d.Wait <= 0 || d.Wait > 200*time.Millisecond {
				t.Errorf("%s: without Retry-After the wait is %v", tool, d.Wait)
			}
			told := a
			told.HasRetryAfter, told.RetryAfter = true, 7*time.Second
			if d := decide(tool, told); d.Action != policy.Repeat || d.Wait < 7*time.Second || d.Wait > 7200*time.Millisecond {
				t.Errorf("%s: Retry-After does not come first: %+v", tool, d)
			}
			told.RetryAfter = 2 * time.Minute
			if d := decide(tool, told); d.Action != policy.Stop {
				t.Errorf("%s: a wait is cut short: %+v", tool, d)
			}
			if got := resolve(tool).Retry.RetryAfterCap; got != time.Minute {
				t.Errorf("%s: a wait of %v is kept", tool, got)
			}
			// No way around a limit by calls in parallel.
			if got := resolve(tool); got.Gate != policy.GateServer || got.Limiter.Rate != 2 {
				t.Errorf("%s: gate %s, limiter %+v", tool, got.Gate, got.Limiter)
			}
		}
	})
	t.Run("JSON-RPC -32602, parámetros inválidos", func(t *testing.T) { // Normalmente no con los mismos parámetros
		stops(t, rpc(-32602, observe.Answered), everyTool...)
	})
	t.Run("Fallo de herramienta isError: true", func(t *testing.T) { // no repetir a ciegas
		stops(t, ended(observe.ToolError, observe.Answered), everyTool...)
	})
	t.Run("MALFORMED_JSON / INVALID_ENVELOPE / INVALID_TOOL_RESULT", func(t *testing.T) { // Sin repetición ciega
		for _, o := range []observe.Outcome{observe.MalformedJSON, observe.InvalidEnvelope, observe.InvalidToolResult} {
			stops(t, ended(o, observe.Unknown), everyTool...)
		}
	})
	t.Run("INPUT_REQUIRED", func(t *testing.T) { // No es un reintento por fallo
		stops(t, ended(observe.InputRequired, observe.Answered), everyTool...)
	})
	// The paragraph below the table.
	t.Run("hasta dos reintentos, retroceso exponencial inicial de 200 ms y jitter", func(t *testing.T) {
		a := http(503, observe.Unknown)
		for n, longest := range []time.Duration{200 * time.Millisecond, 400 * time.Millisecond} {
			for _, r := range []float64{0, 0.25, 0.5, 0.999} {
				d := decide(read, a, func(s *policy.State) { s.Repeats, s.Rand = n, r })
				if want := time.Duration(float64(longest) * r); d.Action != policy.Repeat || d.Wait.Round(time.Microsecond) != want.Round(time.Microsecond) {
					t.Errorf("repeat %d: %+v, want a wait of %v", n+1, d, want)
				}
			}
		}
	})
	t.Run("HTTP 200 sin resultado final no es éxito de la herramienta", func(t *testing.T) {
		stops(t, policy.Attempt{Outcome: observe.StreamIncomplete, Delivery: observe.Unknown, Status: 200}, payment, write, notice)
	})
}
