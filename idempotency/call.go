package idempotency

import (
	"cmp"
	"time"
)

// A Call is what a [Ledger] needs to know of a call before it is made.
type Call struct {
	// Principal and Server keep calls apart; see [WithPrincipal]. The server is known
	// by what the host calls it.
	Principal, Server string
	Tool              string
	// Intent is the decision to act, or "": see [WithIntent].
	Intent string
	// Key is the host's own key, or "". It comes before the one derived from an
	// intent.
	Key string
	// Keyed says that the server executes at most once for each key: a repeat with
	// the same key is harmless. Otherwise the call is unsafe.
	Keyed bool
	// Fingerprint says what the call asks for: see [FingerprintOf].
	Fingerprint Fingerprint
	// GuardWindow is how long an equal call whose outcome is unknown stands in the
	// way of this one; 0 or less turns the guard off.
	GuardWindow time.Duration
	// RepeatAllowed lets the call pass although it, or an equal call, may have taken
	// effect: see [WithRepeatAllowed].
	RepeatAllowed bool
}

// A request is a call with the names under which a ledger knows it.
type request struct {
	Call
	scope   string
	id, key string
	named   bool
	adopted bool      // key and id are those of an equal call
	alias   *Entry    // under which the intent was found; id is what that stands for
	behind  [2]string // names of a call under way to wait for
	flight  *flight   // that the call holds while it is decided on
	now     time.Time
}

func newRequest(scope string, c Call) request {
	r := request{
		Call:  c,
		scope: scope,
		named: c.Intent != "" || c.Key != "",
	}
	r.name()
	return r
}

// name gives the call the names by which it is looked for first.
func (r *request) name() {
	switch {
	case r.Intent != "":
		r.id = DeriveKey(r.Principal, r.Intent, r.Server, r.Tool)
	case r.Key != "":
		r.id = r.Key
	default:
		r.id = NewKey()
	}
	r.key = cmp.Or(r.Key, r.id)
	r.alias = nil
}

// adopt makes the call a repeat of an equal one.
func (r *request) adopt(e *Entry) { r.id, r.key, r.adopted = e.ID, e.Key, true }

// own returns the entry of this very call: the one with its ID, or else with its
// key.
func (r *request) own(found []Entry) *Entry {
	for _, id := range []string{r.id, r.key} {
		for i := range found {
			if found[i].ID == id || found[i].Key == id {
				return &found[i]
			}
		}
	}
	return nil
}

// differs reports whether what a name stands for is another call than this one.
func (r *request) differs(f Fingerprint, key string) bool {
	return f != r.Fingerprint || r.Key != "" && r.Key != key
}

// first is the entry of a call that is made for the first time.
func (r *request) first() Entry {
	return Entry{
		Scope: r.scope, ID: r.id, Key: r.key, Named: r.named,
		Server: r.Server, Tool: r.Tool, Fingerprint: r.Fingerprint,
	}
}
