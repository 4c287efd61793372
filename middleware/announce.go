package middleware

import "github.com/surecall/surecall/idempotency"

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
