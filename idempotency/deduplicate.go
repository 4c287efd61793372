package idempotency

import (
	"cmp"
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Deduplicate returns a receiving middleware that executes a tools/call once for
// each key and principal, for servers on the same SDK:
//
//	server.AddReceivingMiddleware(idempotency.Deduplicate(store, nil))
//
// A call without a key in _meta passes untouched. A call with the key of an earlier
// one
//
//   - gets the earlier answer, with [MetaReplay] in its _meta, JSON-RPC errors
//     included;
//   - waits while the earlier one runs;
//   - gets error -32602 if its tool or its arguments are others;
//   - gets error -32603 if nobody knows what became of the earlier one: the tool
//     panicked, or failed after its request had been cancelled, or the process died.
//     It is not executed again. The error's data holds {"idempotency": [Kind]}.
//
// A call that takes several rounds (2026-07-28) is one call: it is known by the key
// under [MetaCallKey] where there is one beside that of the round, and else by its key.
// An answer that asks for input is not final: it is not stored, and the next round is
// executed. Once the call is done, every round of it gets the final answer, also where
// it is made again from its first round and would take another number of rounds this
// time. Input responses are no part of what the key stands for.
//
// Put it inside of whatever refuses calls, such as a rate limiter, so that a refusal
// is not stored. It adds itself to the answers to initialize and server/discover:
// see [Announced]. A nil store is a new [Memory]; opts may be nil.
func Deduplicate(store Store, opts *DeduplicateOptions) mcp.Middleware {
	d := newDeduplicator(store, opts)
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if call, ok := req.(*mcp.CallToolRequest); ok && call.Params != nil {
				return d.call(ctx, next, method, call)
			}
			res, err := next(ctx, method, req)
			return d.announced(res), err
		}
	}
}

// DeduplicateOptions configure [Deduplicate]. The zero value means the defaults.
type DeduplicateOptions struct {
	// MetaKey is the _meta name of the key; "" means [MetaKey].
	MetaKey string
	// Principal says who calls. nil takes TokenInfo.UserID, and "" for all calls
	// without a token: then a caller who learns another's key learns its answer.
	Principal func(*mcp.CallToolRequest) string
	// FinishCanceled lets the execution of a call with a key go on when its request
	// is cancelled or its client has gone, so that a repeat gets its answer. Without
	// it the tool's context ends with the request, and if the tool then fails, what it
	// did is unknown and a repeat is refused.
	FinishCanceled bool
	// Ledger says how long answers are kept, and up to which size.
	Ledger LedgerOptions
}

// maxKey bounds a client's keys, in bytes.
const maxKey = 1024

type deduplicator struct {
	opts   DeduplicateOptions
	ledger *Ledger
}

func newDeduplicator(store Store, opts *DeduplicateOptions) *deduplicator {
	d := &deduplicator{}
	if opts != nil {
		d.opts = *opts
	}
	if d.opts.MetaKey == "" {
		d.opts.MetaKey = MetaKey
	}
	if d.opts.Principal == nil {
		d.opts.Principal = userID
	}
	d.ledger = newLedger(store, &d.opts.Ledger, "surecall served scope 1")
	return d
}

func userID(req *mcp.CallToolRequest) string {
	if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
		return extra.TokenInfo.UserID
	}
	return ""
}

// call executes a call, or answers it from the ledger.
func (d *deduplicator) call(ctx context.Context, next mcp.MethodHandler, method string, req *mcp.CallToolRequest) (mcp.Result, error) {
	key, err := d.key(req.Params.Meta)
	switch {
	case err != nil:
		return nil, err
	case key == "":
		return next(ctx, method, req)
	}
	fingerprint, err := FingerprintOf("", req.Params.Name, req.Params.Arguments)
	if err != nil {
		return nil, invalid("%v", err)
	}
	ticket, err := d.ledger.Begin(ctx, Call{
		Principal: d.opts.Principal(req), Tool: req.Params.Name, Key: key, Fingerprint: fingerprint,
	})
	switch {
	case err != nil:
		return nil, refusal(err)
	case ticket.Answer() != nil:
		return replayed(ticket)
	}
	return d.execute(ctx, next, method, req, ticket)
}

// key is the key of the whole call, or "" for one without.
func (d *deduplicator) key(meta mcp.Meta) (string, error) {
	round, err := keyIn(meta, d.opts.MetaKey)
	if round == "" || err != nil {
		return "", err
	}
	call, err := keyIn(meta, MetaCallKey)
	return cmp.Or(call, round), err
}

func keyIn(meta mcp.Meta, name string) (string, error) {
	value, ok := meta[name]
	if !ok {
		return "", nil
	}
	key, ok := value.(string)
	if !ok || key == "" || len(key) > maxKey {
		return "", invalid("%s in _meta must be a string of 1 to %d bytes", name, maxKey)
	}
	return key, nil
}

// execute runs the tool. A store that cannot note the answer does not take it from
// the caller: the entry stays as it was begun, and a repeat will be refused.
func (d *deduplicator) execute(ctx context.Context, next mcp.MethodHandler, method string, req mcp.Request, ticket *Ticket) (mcp.Result, error) {
	defer ticket.Settle(ctx, Settlement{State: Unknown}) // the tool panics
	work := ctx
	if d.opts.FinishCanceled {
		work = context.WithoutCancel(ctx)
	}
	res, err := next(work, method, req)
	_ = ticket.Settle(ctx, settlement(work, res, err))
	return res, err
}

// announced adds the announcement to an answer that holds the server's
// capabilities. The server's own answer is not changed.
func (d *deduplicator) announced(res mcp.Result) mcp.Result {
	switch res := res.(type) {
	case *mcp.InitializeResult:
		if res != nil {
			c := *res
			c.Capabilities = d.announce(c.Capabilities)
			return &c
		}
	case *mcp.DiscoverResult:
		if res != nil {
			c := *res
			c.Capabilities = d.announce(c.Capabilities)
			return &c
		}
	}
	return res
}

func (d *deduplicator) announce(of *mcp.ServerCapabilities) *mcp.ServerCapabilities {
	var c mcp.ServerCapabilities
	if of != nil {
		c = *of
	}
	Announce(&c, d.opts.MetaKey)
	return &c
}
