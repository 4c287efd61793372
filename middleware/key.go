package middleware

import (
	"context"
	"maps"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/policy"
)

// Key gives each tools/call one idempotency key: the one that the host put into
// the context or into _meta, else a fresh one. It stands above the loop, so that
// no code path can mint a second key for the same call. The caller's params are
// not changed.
func Key(opts *Options) mcp.Middleware { return newCore(opts).keyed }

func (c *core) keyed(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ctx, cl := c.begin(ctx, method, req)
		if cl == nil || !cl.isTool() || cl.params() == nil {
			return next(ctx, method, req)
		}
		params := *cl.params()
		if cl.key = hostKey(ctx, params.Meta); cl.key == "" {
			cl.key, cl.minted = c.opts.NewKey(), true
		}
		params.Meta = maps.Clone(params.Meta)
		if params.Meta == nil {
			params.Meta = mcp.Meta{}
		}
		params.Meta[idempotency.MetaKey] = cl.key
		cl.replace(&params)
		return next(ctx, method, cl.request)
	}
}

// hostKey is the key that the host gave the call, or "".
func hostKey(ctx context.Context, meta mcp.Meta) string {
	if key := idempotency.KeyFrom(ctx); key != "" {
		return key
	}
	key, _ := meta[idempotency.MetaKey].(string)
	return key
}

// headers are the headers that the Transport adds to the call's POSTs: the key,
// for keyed tools whose policy names a header, as a structured-field string (RFC
// 9651, section 3.3.3). For other tools a key header would only arm whatever
// between us and the server takes it for a licence to repeat.
func (cl *call) headers() map[string]string {
	if cl.key == "" || cl.tool.Safety != policy.Keyed || cl.tool.Key.Header == "" || !isASCII(cl.key) {
		return nil
	}
	return map[string]string{cl.tool.Key.Header: strconv.Quote(cl.key)}
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
