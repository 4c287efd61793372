package middleware

// announcesKeys reports whether the session's server has announced that it executes
// a call at most once for each key (idempotency.Deduplicate does). It counts only
// where the policy trusts the server.
func (c *core) announcesKeys(cl *call) bool {
	if cl.session == nil {
		return false
	}
	r := cl.session.InitializeResult()
	if r == nil || r.Capabilities == nil {
		return false
	}
	_, ok := r.Capabilities.Experimental[experimentalKeys]
	return ok
}

const experimentalKeys = "io.github.surecall/idempotency"
