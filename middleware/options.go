package middleware

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// Options configure a [Stack], or a middleware used alone. A nil pointer and the
// zero value mean the defaults. Options are copied when they are taken.
type Options struct {
	// Policy says what may be repeated. Nil: every tool is unsafe and nothing with
	// a possible effect is repeated. Validate it first: what Policy.Validate would
	// report is read in the cautious way. It must not be changed afterwards;
	// [Stack.SetPolicy] puts another in its place.
	Policy *policy.Policy
	// Server names servers that neither the host's context (observe.WithServer)
	// nor a handshake over HTTP has named.
	Server string
	// Client is the client's label in records, such as "agent@1.4.0".
	Client string
	// OnRecord is called once for each tools/call, with the call's context, on the
	// caller's goroutine, before the call returns. It must not block; if it panics, the
	// panic is swallowed and the call returns as it would. Several handlers are put
	// together by observe.Tee. Nil: no records are made.
	OnRecord func(context.Context, *observe.Record)
	// Observer follows calls while they are under way; observe/otelobserve has one that
	// makes spans and metrics of them. Nil: nobody does. It must not be changed afterwards.
	Observer *observe.Observer
	// Shadow changes nothing about calls: no repeat, no key, no wait and no refusal, and
	// every byte passes as it is. Records tell what the policy would have decided
	// ([observe.Record.Would]). Ledger and Reconcile are not used: what the ledger would
	// have done is found out with one of the shadow's own, in memory. Nor is a session
	// renewed, or SessionLost and OnHealed asked; sessions over stdio are the SDK's, and
	// records then know no more than what the SDK returned. An Observer is told as ever,
	// but adds nothing to requests.
	Shadow bool
	// Disclose lets records show arguments and results of some tools. The first entry
	// that matches a tool counts; without one, nothing is shown. The slice is copied.
	Disclose []Disclosure
	// HideEmail redacts e-mail addresses in a server's words, as credentials are.
	HideEmail bool
	// Ledger remembers calls of keyed and unsafe tools, so that one intent has one
	// effect. Default: in memory. NoLedger does without.
	Ledger *idempotency.Ledger
	// NoLedger leaves intents, replays and the guard against equal calls to the host.
	NoLedger bool
	// Reconcile finds out what became of calls of keyed and unsafe tools whose outcome
	// is unknown: the first that matches a tool is asked, and the tool that the policy
	// names (policy.Reconcile) where none does. It needs a ledger. The slice is copied.
	Reconcile []Reconciliation
	// OnHealed, if set, is called once after each renewal of a lost session (MCP
	// 2025-11-25 and earlier), so that the host can restore what the server has
	// forgotten: its log level, subscriptions, a chosen workspace. What it sends on that
	// session, with the context that it is given, goes out at once; everything else on
	// the session waits until it returns or the time for healing is over, when its
	// context ends. It is called on a goroutine of its own, for several sessions at the
	// same time.
	OnHealed func(context.Context, Renewal)
	// SessionLost, if set, tells further shapes in which a server says that it does not
	// know a session, beside 404. An answer that it recognises is believed when a ping
	// under the same id is answered in such a shape too. It must be safe for concurrent
	// use and must not block.
	SessionLost func(*SessionAnswer) bool
	// NewKey makes idempotency keys. Default [idempotency.NewKey].
	NewKey func() string
	// Rand returns a number in [0,1) for the jitter. Default math/rand/v2.
	Rand func() float64
}

func (o *Options) copy() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Shadow {
		c.Ledger, c.Reconcile = nil, nil
	}
	switch {
	case c.NoLedger:
		c.Ledger = nil
	case c.Ledger == nil:
		c.Ledger = idempotency.NewLedger(nil, nil)
	}
	c.Reconcile, c.Disclose = slices.Clone(c.Reconcile), slices.Clone(c.Disclose)
	if c.NewKey == nil {
		c.NewKey = idempotency.NewKey
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	return c
}

// settleTime is how long an attempt whose context has ended waits for its POSTs
// to come to their end, so that their delivery is known. net/http gives up a
// request at once when its context ends; a caller who cancels must not notice.
const settleTime = 10 * time.Millisecond
