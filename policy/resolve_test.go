package policy_test

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// The numbers of the design.
func TestDefaults(t *testing.T) {
	want := policy.Tool{
		Rule:   "default",
		Safety: policy.Unsafe,
		Retry: policy.EffectiveRetry{
			Repeats: 2, Backoff: 200 * time.Millisecond, BackoffCap: 5 * time.Second,
			RetryAfterCap: time.Minute, Signals: policy.Signals(), Throttled: true, Budget: 10,
		},
		Limits:    policy.Limits{Connect: 10 * time.Second, Silence: 5 * time.Minute, Call: 10 * time.Minute},
		Session:   policy.EffectiveSession{Heal: true, Timeout: 10 * time.Second},
		Breaker:   policy.Breaker{Failures: 5, Open: 30 * time.Second},
		Gate:      policy.GateServer,
		Key:       policy.Key{Guard: 10 * time.Minute},
		Surface:   policy.SurfaceCaller,
		MaxResult: 64 << 20,
	}
	for name, p := range map[string]*policy.Policy{
		"nil": nil, "empty": {}, "empty rules": {Rules: make([]policy.Rule, 3)},
		"no match": {Rules: []policy.Rule{
			{Server: "other", Settings: policy.Settings{Safety: policy.ReadOnly}},
			{Tool: "other", Settings: policy.Settings{Safety: policy.ReadOnly}},
		}},
	} {
		want.Server, want.Name = "server", "pay"
		if got := p.Resolve("server", "pay", nil); !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: got %+v, want %+v", name, *got, want)
		}
	}
	want.Server, want.Name = "", ""
	if got := policy.Defaults(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestPrecedence(t *testing.T) {
	p := &policy.Policy{Rules: []policy.Rule{
		{Name: "first", Server: "bank", Tool: "pay_*", Settings: policy.Settings{Safety: policy.Keyed}},
		{Name: "second", Tool: "pay_*", Settings: policy.Settings{
			Safety:  policy.ReadOnly, // loses for bank
			Retry:   policy.Retry{Repeats: 5, Codes: []int64{1, 2}},
			Surface: policy.SurfaceModel,
		}},
		{Settings: policy.Settings{ // the last rule matches everything
			Safety:  policy.Idempotent,
			Retry:   policy.Retry{Repeats: 9, Backoff: time.Second, Codes: []int64{3}, Statuses: []int{404}},
			Strict:  new(true),
			Limiter: policy.Limiter{Rate: 3},
		}},
	}}
	for _, row := range []struct {
		server, tool string
		safety       policy.Safety
		rule         string
		repeats      int
		codes        []int64
	}{
		{"bank", "pay_bill", policy.Keyed, "first", 5, []int64{1, 2}},
		{"shop", "pay_bill", policy.ReadOnly, "second", 5, []int64{1, 2}},
		{"bank", "read", policy.Idempotent, "rules[2]", 9, []int64{3}},
	} {
		got := p.Resolve(row.server, row.tool, nil)
		if got.Safety != row.safety || got.Rule != row.rule || got.Retry.Repeats != row.repeats || !slices.Equal(got.Retry.Codes, row.codes) {
			t.Errorf("%s/%s: got %+v", row.server, row.tool, *got)
		}
		if got.Server != row.server || got.Name != row.tool {
			t.Errorf("named %s/%s", got.Server, got.Name)
		}
		// What only the last rule sets reaches every tool.
		if got.Retry.Backoff != time.Second || !got.Reading.Strict || got.Limiter != (policy.EffectiveLimiter{Rate: 3, Burst: 1}) || !slices.Equal(got.Retry.Statuses, []int{404}) {
			t.Errorf("%s/%s: got %+v", row.server, row.tool, *got)
		}
	}

	tool := p.Resolve("bank", "pay_bill", nil)
	for setting, want := range map[string]string{
		"safety": "first", "retry.repeats": "second", "surface": "second", "retry.backoff": "rules[2]", "strict": "rules[2]",
		"limits.call": "default", "": "default", "no such": "default",
	} {
		if got := tool.Source(setting); got != want {
			t.Errorf("source of %q: %q, want %q", setting, got, want)
		}
	}
}

// Every setting can be set, alone, and says where it comes from. A field that is
// added to Settings without a place in the list of fields fails here.
func TestEveryField(t *testing.T) {
	covered := make(map[string]bool)
	var walk func(v reflect.Value, set func(*policy.Settings) reflect.Value)
	walk = func(v reflect.Value, set func(*policy.Settings) reflect.Value) {
		for i := range v.NumField() {
			at := func(s *policy.Settings) reflect.Value { return set(s).Field(i) }
			if v.Field(i).Kind() == reflect.Struct {
				walk(v.Field(i), at)
				continue
			}
			rule := policy.Rule{Name: "rule"}
			at(&rule.Settings).Set(example(t, v.Field(i).Type()))
			tool := (&policy.Policy{Rules: []policy.Rule{rule}}).Resolve("", "", nil)
			var from []string
			for _, name := range policy.Fields() {
				if tool.Source(name) == "rule" {
					from = append(from, name)
				}
			}
			if len(from) != 1 || covered[from[0]] {
				t.Errorf("%s sets %q", v.Type().Field(i).Name, from)
				continue
			}
			covered[from[0]] = true
		}
	}
	walk(reflect.ValueOf(policy.Settings{}), func(s *policy.Settings) reflect.Value { return reflect.ValueOf(s).Elem() })
	if len(covered) != len(policy.Fields()) {
		t.Errorf("%d of %d fields can be set", len(covered), len(policy.Fields()))
	}
}

// example is a value other than zero.
func example(t *testing.T, typ reflect.Type) reflect.Value {
	v := reflect.New(typ).Elem()
	switch typ.Kind() {
	case reflect.String:
		v.SetString("keyed")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(7)
	case reflect.Pointer:
		v.Set(reflect.New(typ.Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(typ, 1, 1))
	default:
		t.Fatalf("a %v is new to this test", typ)
	}
	return v
}

func TestNegativeIsOff(t *testing.T) {
	off := policy.Settings{
		Retry:     policy.Retry{Repeats: -1, Backoff: -1, BackoffCap: -1, RetryAfterCap: -1, Budget: -1},
		Limits:    policy.Limits{Connect: -1, Headers: -1, Silence: -1, Attempt: -1, Call: -1},
		Session:   policy.Session{Timeout: -1},
		Breaker:   policy.Breaker{Failures: -1},
		Limiter:   policy.Limiter{Rate: -1},
		MaxResult: -1,
	}
	on := policy.Settings{
		Retry:     policy.Retry{Repeats: 1, Backoff: 1, BackoffCap: 1, RetryAfterCap: 1, Budget: 1},
		Limits:    policy.Limits{Connect: 1, Headers: 1, Silence: 1, Attempt: 1, Call: 1},
		Session:   policy.Session{Timeout: 1},
		Breaker:   policy.Breaker{Failures: 1},
		Limiter:   policy.Limiter{Rate: 1, Burst: 4, NoWait: new(true)},
		MaxResult: 1,
	}
	got := (&policy.Policy{Rules: []policy.Rule{{Settings: off}, {Settings: on}}}).Resolve("", "", nil)
	want := policy.EffectiveRetry{Signals: policy.Signals(), Throttled: true}
	if !reflect.DeepEqual(got.Retry, want) || got.Limits != (policy.Limits{}) || got.Breaker != (policy.Breaker{}) || got.Session.Timeout != 0 ||
		got.Limiter != (policy.EffectiveLimiter{}) || got.MaxResult != 0 {
		t.Errorf("got %+v", *got)
	}
}

func TestEmptyListIsSet(t *testing.T) {
	got := (&policy.Policy{Rules: []policy.Rule{
		{Settings: policy.Settings{Retry: policy.Retry{Codes: []int64{}}, Tolerate: []string{}}},
		{Settings: policy.Settings{Retry: policy.Retry{Codes: []int64{1}, Statuses: []int{404}}, Tolerate: []string{"id_form"}}},
	}}).Resolve("", "", nil)
	if len(got.Retry.Codes) != 0 || len(got.Reading.Tolerate) != 0 || len(got.Retry.Statuses) != 1 {
		t.Errorf("got %+v", *got)
	}
}

func TestAnnotations(t *testing.T) {
	for _, row := range []struct {
		name   string
		trust  *bool
		safety policy.Safety
		hints  *policy.Annotations
		want   policy.Safety
		rule   string
	}{
		{"not trusted by default", nil, "", &policy.Annotations{ReadOnly: true}, policy.Unsafe, "default"},
		{"not trusted", new(false), "", &policy.Annotations{ReadOnly: true}, policy.Unsafe, "default"},
		{"read-only", new(true), "", &policy.Annotations{ReadOnly: true}, policy.ReadOnly, "annotations"},
		{"idempotent", new(true), "", &policy.Annotations{Idempotent: true}, policy.Idempotent, "annotations"},
		{"both", new(true), "", &policy.Annotations{ReadOnly: true, Idempotent: true}, policy.ReadOnly, "annotations"},
		{"neither", new(true), "", &policy.Annotations{}, policy.Unsafe, "default"},
		{"none", new(true), "", nil, policy.Unsafe, "default"},
		{"the operator said unsafe", new(true), policy.Unsafe, &policy.Annotations{ReadOnly: true}, policy.Unsafe, "rule"},
		{"the operator said keyed", new(true), policy.Keyed, &policy.Annotations{ReadOnly: true}, policy.Keyed, "rule"},
		{"the operator misspelt it", new(true), "readonly", &policy.Annotations{ReadOnly: true}, policy.Unsafe, "rule"},
	} {
		p := &policy.Policy{Rules: []policy.Rule{{Name: "rule", Settings: policy.Settings{TrustAnnotations: row.trust, Safety: row.safety}}}}
		got := p.Resolve("", "x", row.hints)
		if got.Safety != row.want || got.Rule != row.rule || got.Source("safety") != row.rule {
			t.Errorf("%s: %q by %q, source %q", row.name, got.Safety, got.Rule, got.Source("safety"))
		}
	}
}

// What Validate reports is read in the cautious way.
func TestBadRulesResolveCautiously(t *testing.T) {
	got := (&policy.Policy{Rules: []policy.Rule{
		{Tool: "pay", Settings: policy.Settings{
			Safety: "readonly", Surface: "user", Key: policy.Key{Header: "Idempotency-Key"},
			Breaker: policy.Breaker{Open: -1}, Limiter: policy.Limiter{Rate: 2, Burst: -1}, Retry: policy.Retry{Budget: math.NaN()},
		}},
		{Settings: policy.Settings{Safety: policy.ReadOnly, Surface: policy.SurfaceModel}},
	}}).Resolve("", "pay", nil)
	if got.Safety != policy.Unsafe || got.Surface != policy.SurfaceCaller || got.Key.Header != "" ||
		got.Breaker != (policy.Breaker{}) || got.Limiter.Burst != 1 || got.Retry.Budget != 10 {
		t.Errorf("got %+v", *got)
	}
}

func TestKeyHeaderOfKeyedToolsOnly(t *testing.T) {
	p := &policy.Policy{Rules: []policy.Rule{
		{Tool: "pay_*", Settings: policy.Settings{Safety: policy.Keyed}},
		{Settings: policy.Settings{Key: policy.Key{Header: "Idempotency-Key"}}},
	}}
	if got := p.Resolve("", "pay_bill", nil).Key.Header; got != "Idempotency-Key" {
		t.Errorf("keyed: %q", got)
	}
	if got := p.Resolve("", "send", nil).Key.Header; got != "" {
		t.Errorf("unsafe: %q", got)
	}
}

func TestReads(t *testing.T) {
	p := &policy.Policy{Rules: []policy.Rule{
		{Name: "payments", Server: "bank", Tool: "pay*", Settings: policy.Settings{Retry: policy.Retry{Repeats: 7}}},
		{Name: "bank", Server: "bank", Tool: "*", Settings: policy.Settings{
			Safety: policy.Unsafe, Retry: policy.Retry{Repeats: 1, Budget: 3}, Limits: policy.Limits{Call: time.Minute},
			Limiter: policy.Limiter{Rate: 1}, Breaker: policy.Breaker{Failures: 1}, Surface: policy.SurfaceModel, Key: policy.Key{Header: "K"},
		}},
		{Name: "all", Settings: policy.Settings{MaxResult: 5}},
	}}
	got := p.Reads("bank")
	want := policy.Defaults()
	want.Server, want.Safety = "bank", policy.ReadOnly
	want.Retry.Repeats, want.Retry.Budget = 1, 0
	want.Limits.Call = time.Minute
	want.Breaker = policy.Breaker{}
	want.MaxResult = 5
	if got.Server != want.Server || got.Safety != want.Safety || !reflect.DeepEqual(got.Retry, want.Retry) || got.Limits != want.Limits ||
		got.Breaker != want.Breaker || got.Limiter != want.Limiter || got.MaxResult != want.MaxResult || got.Key != want.Key || got.Surface != want.Surface {
		t.Errorf("got %+v, want %+v", *got, want)
	}
	if repeats := (*policy.Policy)(nil).Reads("x").Retry.Repeats; repeats != 2 {
		t.Errorf("nil policy: %d repeats", repeats)
	}
	// A 503 hides the tools unless it is repeated; it needs no budget.
	check(t, got.Decide(http(503, observe.Unknown), policy.State{Remaining: policy.NoDeadline, Rand: 0.5}), half)
}
