package middleware

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// Key gives each tools/call one idempotency key, and sees to it that one intent has
// one effect: calls of keyed and unsafe tools are begun in the ledger before
// anything is sent, and settled on the way up. It stands above the loop, so that no
// code path can mint a second key for the same call. The caller's params are not
// changed.
func Key(opts *Options) mcp.Middleware { return newCore(opts).keyed }

func (c *core) keyed(next mcp.MethodHandler) mcp.MethodHandler {
	if c.opts.Shadow {
		return next
	}
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ctx, cl := c.begin(ctx, method, req)
		if cl == nil || !cl.isTool() || cl.params() == nil {
			return next(ctx, method, req)
		}
		k := keying{core: c, call: cl, next: next}
		return k.run(ctx)
	}
}

// keying takes one call through the ledger.
type keying struct {
	core *core
	call *call
	next mcp.MethodHandler

	argument *keyArgument // nil where the policy names none
}

func (k *keying) run(ctx context.Context) (mcp.Result, error) {
	cl := k.call
	ctx, cancel := cl.limited(ctx)
	defer cancel()
	cl.given = cl.params().Arguments
	host, err := k.hostKey(ctx)
	if err != nil {
		return k.refuse(ctx, err)
	}
	intent := idempotency.IntentFrom(ctx)
	cl.named = host != "" || intent != ""
	cl.key = host // shown also if the call is held back
	if k.core.opts.Ledger == nil || bypassesLedger(cl.tool.Safety) {
		if err := k.core.checkArgument(ctx, cl); err != nil {
			return k.refuse(ctx, err)
		}
		k.carry(ownKey(ctx, cl, host, k.core.opts.NewKey))
		cl.resumeRounds(0, false)
		return k.next(ctx, cl.method, cl.request)
	}
	cl.ledger = &observe.LedgerRecord{Step: observe.LedgerBlocked} // until it passes
	ticket, found, err := k.begin(ctx, host)
	switch {
	case err != nil:
		return k.refuseBegin(ctx, err)
	case found != nil:
		return k.repeated(found), nil
	case ticket.Answer() != nil:
		return k.replay(ctx, ticket)
	}
	return k.send(ctx, ticket)
}

// bypassesLedger reports whether a repeat of such a tool needs no ledger.
func bypassesLedger(s policy.Safety) bool { return s == policy.ReadOnly || s == policy.Idempotent }

// begin asks the ledger, and the host where earlier calls in doubt stand in the way.
// The result is that of an earlier call which the host has found.
func (k *keying) begin(ctx context.Context, host string) (*idempotency.Ticket, *mcp.CallToolResult, error) {
	c, err := k.ledgerCall(ctx, host)
	if err != nil {
		return nil, nil, err
	}
	ticket, err := k.core.opts.Ledger.Begin(ctx, c)
	if err != nil {
		return k.reconcileEarlier(ctx, c, err)
	}
	return ticket, nil, nil
}

// ledgerCall is what the ledger needs to know of the call.
func (k *keying) ledgerCall(ctx context.Context, host string) (idempotency.Call, error) {
	cl := k.call
	print, err := idempotency.FingerprintOf(cl.server.scope, cl.tool.Name, k.asked())
	return idempotency.Call{
		Principal:     idempotency.PrincipalFrom(ctx),
		Server:        cl.server.scope,
		Tool:          cl.tool.Name,
		Intent:        idempotency.IntentFrom(ctx),
		Key:           host,
		Keyed:         cl.tool.Safety == policy.Keyed,
		Fingerprint:   print,
		GuardWindow:   cl.tool.Key.Guard,
		RepeatAllowed: idempotency.RepeatAllowed(ctx),
	}, err
}

// LedgerCall is a call with these parameters as the ledger knows it: with the names in
// the context, those of the session's server, and the policy in force. Give it to
// [idempotency.Ledger.InDoubt] where somebody has found out what became of the call.
// It sends nothing, and does not need a call to be under way.
func (s *Stack) LedgerCall(ctx context.Context, session *mcp.ClientSession, params *mcp.CallToolParams) (idempotency.Call, error) {
	if params == nil {
		return idempotency.Call{}, errors.New("surecall: LedgerCall: no parameters")
	}
	_, cl := s.core.begin(ctx, methodCallTool, &mcp.ClientRequest[mcp.Params]{Session: session, Params: params})
	k := keying{core: s.core, call: cl}
	cl.given = params.Arguments
	host, err := k.hostKey(ctx)
	if err != nil {
		return idempotency.Call{}, err
	}
	return k.ledgerCall(ctx, host)
}

// send makes the call and settles it, and looks what became of it where that is in
// doubt.
func (k *keying) send(ctx context.Context, ticket *idempotency.Ticket) (mcp.Result, error) {
	cl := k.call
	rounds, _ := ticket.Rounds()
	defer ticket.Settle(ctx, idempotency.Settlement{State: idempotency.Unknown, Rounds: rounds}) //nolint:errcheck // for panics alone
	if err := k.core.checkArgument(ctx, cl); err != nil {
		_ = ticket.Settle(ctx, idempotency.Settlement{State: idempotency.Failed, Rounds: rounds})
		return k.refuse(ctx, err)
	}
	// Others may wait for the answer of a call whose key was adopted.
	cl.named = cl.named || ticket.Adopted()
	cl.guarded = cl.tool.Key.Guard > 0
	k.carry(ticket.Key())
	cl.ledger.Step = observe.LedgerSent
	if ticket.Adopted() {
		cl.ledger.Step = observe.LedgerAdopted
	}
	if since := ticket.Since(); !since.IsZero() {
		// It repeats a call that may have taken effect, whatever becomes of this try.
		cl.ledger.Since, cl.doubt = &since, true
	}
	cl.resumeRounds(ticket.Rounds())
	res, err := k.next(ctx, cl.method, cl.request)
	cl.last(ctx, res, err)
	if cl.ledger.Step == observe.LedgerSent && gravest(cl.attempts) == observe.NotSent {
		cl.ledger.Step = observe.LedgerBegun
	}
	return k.settle(ctx, ticket, res, err)
}

// hostKey is the key that the host gave the call: in the context, in _meta, or in
// the tool's own argument; or "".
func (k *keying) hostKey(ctx context.Context) (string, error) {
	var err error
	if k.argument, err = k.call.keyArgument(); err != nil {
		return "", err
	}
	key := namedKey(ctx, k.call)
	if k.argument != nil {
		given, err := k.argument.value()
		switch {
		case err != nil:
			return "", err
		case key == "":
			key = given
		case given != "" && given != key:
			return "", fmt.Errorf("the call has two keys: that of its argument %q, and another in the context or in _meta", k.call.tool.Key.Argument)
		}
	}
	if header := k.call.headerName(); header != "" && !isASCII(key) {
		return "", fmt.Errorf("the idempotency key of the call is not plain ASCII, so that the header %q, which the policy asks for (key.header), cannot carry it", header)
	}
	return key, nil
}

// namedKey is the key that the host gave in the context or in _meta, or "".
func namedKey(ctx context.Context, cl *call) string {
	if key := idempotency.KeyFrom(ctx); key != "" {
		return key
	}
	params := cl.params()
	if params == nil {
		return ""
	}
	key, _ := params.Meta[cl.metaName()].(string)
	return key
}

// asked is what the call asks for: its arguments without the key.
func (k *keying) asked() any {
	if k.argument == nil {
		return k.call.given
	}
	return k.argument.with("")
}

// ownKey is the key of a call that no ledger knows.
func ownKey(ctx context.Context, cl *call, host string, fresh func() string) string {
	if host != "" {
		return host
	}
	if intent := idempotency.IntentFrom(ctx); intent != "" {
		return idempotency.DeriveKey(idempotency.PrincipalFrom(ctx), intent, cl.server.scope, cl.tool.Name)
	}
	return fresh()
}

// carry gives the call its key.
func (k *keying) carry(key string) {
	cl := k.call
	cl.key = key
	params := *cl.params()
	params.Meta = maps.Clone(params.Meta)
	if params.Meta == nil {
		params.Meta = mcp.Meta{}
	}
	params.Meta[cl.metaName()] = key
	if k.argument != nil {
		params.Arguments = k.argument.with(key)
	}
	cl.replace(&params)
}

// headers are the headers that the Transport adds to the call's POSTs: the key,
// for keyed tools whose policy names a header, as a structured-field string (RFC
// 9651, section 3.3.3). For other tools a key header would only arm whatever
// between us and the server takes it for a licence to repeat.
func (cl *call) headers(key string) map[string]string {
	name := cl.headerName()
	if key == "" || name == "" || !isASCII(key) {
		return nil
	}
	return map[string]string{name: strconv.Quote(key)}
}

// headerName is the header that carries the key, or "".
func (cl *call) headerName() string {
	if cl.tool.Safety != policy.Keyed {
		return ""
	}
	return cl.tool.Key.Header
}

// isASCII reports whether a key can be a structured-field string.
func isASCII(s string) bool {
	for _, r := range s {
		if r < 0x20 || r > 0x7e {
			return false
		}
	}
	return true
}

// refuseBegin ends a call that the ledger did not let pass.
func (k *keying) refuseBegin(ctx context.Context, err error) (mcp.Result, error) {
	var refused *idempotency.Error
	if !errors.As(err, &refused) {
		return k.refuse(ctx, err)
	}
	k.call.ledger.Kind = string(refused.Kind)
	if !refused.Since.IsZero() {
		k.call.ledger.Since = &refused.Since
	}
	if refused.Kind == idempotency.KindRunning && ctx.Err() != nil {
		k.call.add(*interrupted(ctx, theCall))
		return nil, k.call.failure(ctx)
	}
	return k.refuse(ctx, err)
}

// refusalReason is why a call is refused, in our words; "" where those are others'.
func refusalReason(err error) string {
	var refused *idempotency.Error
	var schema *schemaError
	switch {
	case errors.As(err, &refused):
		return refused.Reason
	case errors.As(err, &schema):
		return schema.Error()
	}
	return ""
}

// refuse ends the call before anything was sent. The model may read the reason.
func (k *keying) refuse(ctx context.Context, err error) (mcp.Result, error) {
	var schema *schemaError
	if errors.As(err, &schema) {
		if a := schema.attempt(ctx); a != nil {
			k.call.add(*a)
			return nil, k.call.failure(ctx)
		}
	}
	reason := refusalReason(err)
	if reason == "" { // of the arguments' JSON form, which it may quote
		reason = k.call.redactor(&attempt{}).Text(err.Error(), recordText)
	}
	k.call.add(attempt{Judgement: local(observe.Blocked, reason), err: err})
	k.call.decision = policy.Decision{Action: policy.Stop, Reason: "held back before anything was sent"}
	return nil, k.call.failure(ctx)
}
