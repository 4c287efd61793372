package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// askAll asks one hook about every tool.
func askAll(look middleware.Reconciler) []middleware.Reconciliation {
	return []middleware.Reconciliation{{Look: look}}
}

// A lookout is a host that finds what it is told to find.
type lookout struct {
	finding middleware.Finding
	err     error
	asked   []*middleware.Unresolved
}

func (l *lookout) look(_ context.Context, u *middleware.Unresolved) (middleware.Finding, *mcp.CallToolResult, error) {
	l.asked = append(l.asked, u)
	return l.finding, &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "paid"}}}, l.err
}

// reconciled gives the rig a stack over a ledger, with hooks.
func (r *rig) reconciled(ledger *idempotency.Ledger, hooks ...middleware.Reconciliation) {
	r.stack = middleware.New(&middleware.Options{
		Policy:    &policy.Policy{Rules: append([]policy.Rule{noRepeats}, classes()...)},
		Server:    "shop",
		Ledger:    ledger,
		OnRecord:  checked(r.t, func(_ context.Context, rec *observe.Record) { r.records = append(r.records, rec) }),
		Reconcile: hooks,
	})
	r.session = r.connect(r.t, r.stack)
}

func findings(rec *observe.Record) []string {
	var all []string
	for _, l := range rec.Ledger.Reconciled {
		all = append(all, l.Finding)
	}
	return all
}

func text(res *mcp.CallToolResult) string {
	if res == nil || len(res.Content) == 0 {
		return ""
	}
	return res.Content[0].(*mcp.TextContent).Text
}

// TestReconcile: the host is asked as soon as a call has ended in doubt.
func TestReconcile(t *testing.T) {
	for _, c := range []struct {
		finding middleware.Finding
		err     error
		want    string // the finding in the record
		posts   int
		fails   bool
		settled string
	}{
		{middleware.Happened, nil, "happened", 1, false, "completed"},
		{middleware.DidNotHappen, nil, "did_not_happen", 2, false, "completed"},
		{middleware.CannotTell, nil, "cannot_tell", 1, true, "unknown"},
		{"", nil, "cannot_tell", 1, true, "unknown"},
		{middleware.Happened, errors.New("no connection"), "cannot_tell", 1, true, "unknown"},
	} {
		t.Run(c.want, func(t *testing.T) {
			r := newRig(t, middlewaretest.Options{})
			host := &lookout{finding: c.finding, err: c.err}
			r.reconciled(nil, middleware.Reconciliation{Look: host.look})
			r.server.Script("pay", middlewaretest.Reset())
			res, rec, err := r.call("pay", time.Minute)
			if (err != nil) != c.fails || r.server.Posts("pay") != c.posts || !slices.Equal(findings(rec), []string{c.want}) || rec.Ledger.Settled != c.settled {
				t.Errorf("err %v, %d POSTs, ledger %+v", err, r.server.Posts("pay"), rec.Ledger)
			}
			if first := rec.Attempts[0]; first.Delivery != observe.Unknown || (first.Reconciled == "did_not_happen") != (c.posts == 2) {
				t.Errorf("first attempt %+v", first)
			}
			if u := host.asked[0]; u.Failure == nil || u.Key == "" || u.Since.IsZero() || u.Session != r.session {
				t.Errorf("asked %+v", u)
			}
			if c.want == "happened" && (text(res) != "paid" || rec.Outcome == observe.ToolSuccess) {
				t.Errorf("result %+v, record %+v", res, rec)
			}
		})
	}
}

// TestReconcileEarlier: the host is asked before a call is refused because of an
// earlier one: left behind by a dead process, or by a deadline that left no time to
// ask.
func TestReconcileEarlier(t *testing.T) {
	for _, c := range []struct {
		name    string
		finding middleware.Finding
		intent  string
		effects int // of both calls
		step    observe.LedgerStep
		text    string
	}{
		{"same, happened", middleware.Happened, "i", 1, observe.LedgerReplayed, "paid"},
		{"same, did not happen", middleware.DidNotHappen, "i", 2, observe.LedgerSent, ""},
		{"same, cannot tell", middleware.CannotTell, "i", 1, observe.LedgerBlocked, ""},
		{"equal, happened", middleware.Happened, "", 1, observe.LedgerReplayed, "paid"},
		{"equal, did not happen", middleware.DidNotHappen, "", 2, observe.LedgerSent, ""},
		{"equal, cannot tell", middleware.CannotTell, "", 1, observe.LedgerBlocked, ""},
	} {
		for _, died := range []bool{false, true} {
			name := c.name + ", out of time"
			if died {
				name = c.name + ", dead process"
			}
			t.Run(name, func(t *testing.T) {
				r := newRig(t, middlewaretest.Options{})
				store := idempotency.NewMemory(nil)
				host := &lookout{finding: c.finding}
				hook := middleware.Reconciliation{Look: host.look}
				r.reconciled(idempotency.NewLedger(store, nil), hook)
				ctx := idempotency.WithIntent(t.Context(), c.intent)
				r.server.Script("pay", middlewaretest.Hang().Executed())
				short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
				_, first, _ := r.callIn(short, "pay", map[string]any{"size": 10})
				if len(host.asked) != 0 || first.Ledger.Settled != "unknown" {
					t.Fatalf("asked %d times after the deadline, %+v", len(host.asked), first.Ledger)
				}
				if died {
					r.reconciled(idempotency.NewLedger(store, nil), hook)
				}
				res, rec, err := r.callIn(ctx, "pay", map[string]any{"size": 10})
				if r.server.Effects("pay") != c.effects || rec.Ledger.Step != c.step || (err != nil) != (c.step == observe.LedgerBlocked) {
					t.Fatalf("%d effects, err %v, ledger %+v", r.server.Effects("pay"), err, rec.Ledger)
				}
				if !slices.Equal(findings(rec), []string{string(c.finding)}) || rec.Ledger.Reconciled[0].Equal != (c.intent == "") {
					t.Errorf("reconciled %+v", rec.Ledger.Reconciled)
				}
				if c.text != "" && (text(res) != c.text || res.Meta[idempotency.MetaReplay] == nil) {
					t.Errorf("result %+v", res)
				}
				if u := host.asked[0]; idempotency.Hash(u.Key) != first.IdempotencyKey || u.Failure != nil || u.Since.IsZero() {
					t.Errorf("asked %+v, key of the first call %s", u, first.IdempotencyKey)
				}
				if _, again, err := r.callIn(idempotency.WithIntent(t.Context(), "another"), "pay", map[string]any{"size": 10}); (err != nil) != (c.finding == middleware.CannotTell) {
					t.Errorf("an equal call of another intent: %v %+v", err, again.Ledger)
				}
			})
		}
	}
}

// TestReconcileByTool: the first entry that matches is asked, and no other.
func TestReconcileByTool(t *testing.T) {
	r := newRig(t, middlewaretest.Options{})
	mail, pay, rest := &lookout{}, &lookout{}, &lookout{}
	r.reconciled(nil,
		middleware.Reconciliation{Tool: "mail*", Look: mail.look},
		middleware.Reconciliation{Server: "elsewhere", Look: mail.look},
		middleware.Reconciliation{Tool: "pay", Look: pay.look},
		middleware.Reconciliation{Tool: "slow"},
		middleware.Reconciliation{Look: rest.look},
	)
	for _, tool := range []string{"pay", "pay_keyed", "slow"} {
		r.server.Script(tool, middlewaretest.Reset())
		if _, rec, err := r.call(tool, time.Minute); err == nil {
			t.Errorf("%s: %+v", tool, rec)
		}
	}
	if len(mail.asked) != 0 || len(pay.asked) != 1 || len(rest.asked) != 1 || rest.asked[0].Tool != "pay_keyed" {
		t.Errorf("asked: mail %d, pay %d, rest %v", len(mail.asked), len(pay.asked), rest.asked)
	}
}

// TestHookIsAnotherIntent: what a reconciler calls carries neither the key nor the
// intent of the call that it looks after.
func TestHookIsAnotherIntent(t *testing.T) {
	r := newRig(t, middlewaretest.Options{})
	r.stack = middleware.New(&middleware.Options{
		OnRecord: checked(t, func(_ context.Context, rec *observe.Record) { r.records = append(r.records, rec) }),
		Reconcile: askAll(func(ctx context.Context, u *middleware.Unresolved) (middleware.Finding, *mcp.CallToolResult, error) {
			if idempotency.IntentFrom(ctx) != "" || idempotency.KeyFrom(ctx) != "" || !reflect.DeepEqual(u.Arguments, map[string]any{"size": 10}) {
				t.Errorf("intent %q, key %q, arguments %v", idempotency.IntentFrom(ctx), idempotency.KeyFrom(ctx), u.Arguments)
			}
			_, err := u.Session.CallTool(ctx, &mcp.CallToolParams{Name: u.Tool, Arguments: map[string]any{"status": true}})
			return middleware.Happened, nil, err
		}),
	})
	r.session = r.connect(t, r.stack)
	r.server.Script("pay", middlewaretest.Reset().Executed())
	ctx, cancel := context.WithTimeout(idempotency.WithKey(idempotency.WithIntent(t.Context(), "i"), "k"), time.Minute)
	defer cancel()
	if _, rec, err := r.callIn(ctx, "pay", map[string]any{"size": 10}); err != nil || r.server.Effects("pay") != 2 {
		t.Errorf("%d effects, err %v, record %+v", r.server.Effects("pay"), err, rec)
	}
}

// TestPolicyReconciles: a tool that the policy names finds out.
func TestPolicyReconciles(t *testing.T) {
	rule := policy.Rule{Tool: "pay", Settings: policy.Settings{Reconcile: &policy.Reconcile{
		Tool:         "find_payment",
		Arguments:    map[string]string{"order": "/order/id", "key": policy.ReconcileKey, "kind": "card"},
		Happened:     policy.AnswerMatch{At: "/status", In: []string{"paid"}},
		DidNotHappen: policy.AnswerMatch{Text: "no such payment"},
	}}}
	finds := policy.Rule{Tool: "find_*", Settings: policy.Settings{Safety: policy.ReadOnly}}
	order := map[string]any{"order": map[string]any{"id": json.Number("9007199254740993")}}
	paid := middlewaretest.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"paid"}],"structuredContent":{"status":"paid"}}`)}
	for _, c := range []struct {
		name    string
		rules   []policy.Rule
		args    map[string]any
		answer  middlewaretest.Result
		finding string
		problem string
		looks   int
		posts   int
	}{
		{"happened", []policy.Rule{rule, finds}, order, paid, "happened", "", 1, 1},
		{"did not", []policy.Rule{rule, finds}, order, middlewaretest.Result{Text: "no such payment", IsError: true}, "did_not_happen", "", 1, 2},
		{"neither", []policy.Rule{rule, finds}, order, middlewaretest.Result{Text: "come back later"}, "cannot_tell", "", 1, 1},
		{"no such argument", []policy.Rule{rule, finds}, map[string]any{"order": "7"}, paid, "cannot_tell", "/order/id", 0, 1},
		{"not a reading tool", []policy.Rule{rule}, order, paid, "cannot_tell", "read_only", 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, middlewaretest.Options{}, append(c.rules, noRepeats)...)
			var asked []middlewaretest.Call
			r.server.SetTool(middlewaretest.Tool{Name: "find_payment", Run: func(_ context.Context, call middlewaretest.Call) middlewaretest.Result {
				asked = append(asked, call)
				return c.answer
			}})
			r.server.Script("pay", middlewaretest.Reset())
			res, rec, err := r.callIn(t.Context(), "pay", c.args)
			if !slices.Equal(findings(rec), []string{c.finding}) || !strings.Contains(rec.Ledger.Reconciled[0].Error, c.problem) {
				t.Errorf("err %v, reconciled %+v", err, rec.Ledger.Reconciled)
			}
			if len(asked) != c.looks || r.server.Posts("pay") != c.posts || (err != nil) != (c.finding == "cannot_tell") {
				t.Fatalf("asked %d times, %d POSTs, err %v", len(asked), r.server.Posts("pay"), err)
			}
			if c.finding == "happened" && text(res) != "paid" {
				t.Errorf("result %+v", res)
			}
			if c.looks == 0 {
				return
			}
			var got struct {
				Order     json.Number
				Key, Kind string
			}
			if err := json.Unmarshal(asked[0].Arguments, &got); err != nil || got.Order != "9007199254740993" || idempotency.Hash(got.Key) != rec.IdempotencyKey || got.Kind != "card" {
				t.Errorf("asked with %s (%v)", asked[0].Arguments, err)
			}
		})
	}
}
