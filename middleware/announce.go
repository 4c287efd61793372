package middleware

import (
	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// announced is the _meta name under which the session's server says that it looks
// for keys, executing a call at most once for each (idempotency.Deduplicate says
// so); or "". It counts only where the policy trusts the server.
func (cl *call) announced() string {
	if cl.session == nil {
		return ""
	}
	r := cl.session.InitializeResult()
	if r == nil {
		return ""
	}
	name, _ := idempotency.Announced(r.Capabilities)
	return name
}

// metaName is the key's name in _meta: the policy's, that of a trusted server, or
// ours.
func (cl *call) metaName() string {
	switch {
	case cl.tool.Key.Meta != "":
		return cl.tool.Key.Meta
	case cl.tool.TrustAnnotations && cl.isTool():
		if name := cl.announced(); name != "" {
			return name
		}
	}
	return idempotency.MetaKey
}

// believe corrects what an error of a server with idempotency.Deduplicate means: it is an
// answer, but not to what became of the call. That the server cannot know is believed
// of any server; that nothing was executed, where a repeat is harmless in any case.
func (cl *call) believe(a *attempt) {
	if a.Outcome != observe.JSONRPCError || a.RPC == nil {
		return
	}
	switch idempotency.ServerRefusal(a.RPC.Data) {
	case idempotency.KindUnknown, idempotency.KindRunning:
		a.Delivery, a.Reason = observe.Unknown, "the server does not say what became of an earlier call with this key"
	case idempotency.KindStore:
		if cl.tool.Safety.Harmless() || cl.tool.Safety == policy.Keyed {
			a.Delivery, a.Reason = observe.Refused, "the server could not look up the key, and has not executed the call"
		}
	}
}
