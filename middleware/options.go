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
	// report is read in the cautious way. It must not be changed afterwards.
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
	// Shadow changes nothing about calls: no repeat, no key, no wait and no refusal, and
	// every byte passes as it is. Records tell what the policy would have decided
	// ([observe.Record.Would]). Ledger and Reconcile are not used: what the ledger would
	// have done is found out with one of the shadow's own, in memory.
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
	// is unknown: the first that matches a tool is asked. It needs a ledger. The slice
	// is copied.
	Reconcile []Reconciliation
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
