package idempotency

import "time"

// A State is what is known of a call.
type State string

// The states of a call.
const (
	// Started: begun, and not settled yet. Left behind by a dead process it counts
	// as unknown.
	Started State = "started"
	// Failed: the tool has not run. The same intent may be sent again.
	Failed State = "failed"
	// Completed: the server has answered, be it with an error.
	Completed State = "completed"
	// Unknown: the tool may have run.
	Unknown State = "unknown"
)

// An Entry is what a [Store] keeps of one call. It is a plain value with a JSON
// form; only a [Ledger] knows what it means.
type Entry struct {
	// Scope keeps principals and servers apart: a hash of both.
	Scope string `json:"scope"`
	// ID names the call within its scope: the key derived from its intent, else its
	// Key. ID and Key share one namespace: no two entries of a scope have one in
	// common.
	ID string `json:"id"`
	// Key is the key that travels with the call.
	Key string `json:"key"`
	// SameAs is the ID of the entry that holds what became of the call, where its key
	// was that of an earlier one. Then this entry is only a second name.
	SameAs string `json:"same_as,omitempty"`
	// Named says that the host can ask for the call again, by intent or by key.
	Named bool `json:"named,omitempty"`

	// Server and Tool are for people who look into a store.
	Server      string      `json:"server,omitempty"`
	Tool        string      `json:"tool"`
	Fingerprint Fingerprint `json:"fingerprint"`

	State State `json:"state"`
	// Doubt says that an earlier try of the call, or this one, may have taken effect.
	Doubt bool `json:"doubt,omitempty"`
	// Rounds is how many rounds of the call were answered with a question: see
	// [RoundKey].
	Rounds int `json:"rounds,omitempty"`
	// Owner is the ledger that began the latest try.
	Owner string `json:"owner"`
	// Started is when the call was begun: the first try that may have taken effect.
	Started time.Time `json:"started"`
	// Changed is when the entry was last written.
	Changed time.Time `json:"changed"`
	// Expires is the end of the entry's retention. From then on it is as if it were
	// not there.
	Expires time.Time `json:"expires"`

	// Answer is the answer of a completed call; empty where it was not kept. Its
	// bytes are never changed once they are in an Entry.
	Answer []byte `json:"answer,omitempty"`
	// IsError says that the answer is an error.
	IsError bool `json:"is_error,omitempty"`

	// Revision counts the writes: 0 for an entry that is not stored yet.
	Revision uint64 `json:"revision"`
}

func (e *Entry) names() [2]string { return [2]string{e.ID, e.Key} }

// Unresolved reports whether what became of the call is not known yet.
func (e *Entry) Unresolved() bool { return e.State == Started || e.State == Unknown }

// PlainlyStarted reports whether the call is under way as far as its entry tells, and
// no earlier try of it is in doubt. Then only its owner knows more: see [Query.Owner].
func (e *Entry) PlainlyStarted() bool { return e.State == Started && !e.Doubt }
