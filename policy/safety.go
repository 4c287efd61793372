package policy

import "github.com/surecall/surecall/observe"

// Safety says what a repeat of a tool can do. It is the operator's word about
// the tool; a server's own annotations count only where the policy trusts the
// server (see [Settings.TrustAnnotations]). The zero value, and every value
// other than the constants below, is treated as [Unsafe].
type Safety string

const (
	// ReadOnly: the tool changes nothing. A repeat is harmless.
	ReadOnly Safety = "read_only"
	// Idempotent: a second execution with the same arguments changes nothing more.
	Idempotent Safety = "idempotent"
	// Keyed: the server executes at most once for each idempotency key. A repeat
	// with the same key is harmless.
	Keyed Safety = "keyed"
	// Unsafe: a repeat can double an effect. It is the default.
	Unsafe Safety = "unsafe"
)

// Valid reports whether s is one of the four classes.
func (s Safety) Valid() bool { return s == Unsafe || s.Harmless() }

// Harmless reports whether a repeat of an attempt whose delivery is unknown
// cannot double an effect.
func (s Safety) Harmless() bool { return s == ReadOnly || s == Idempotent || s == Keyed }

// SafeRepeat is the one rule: it reports whether a call of a tool of this class
// can be sent again, by anybody, after it was delivered so. Either a repeat is
// harmless, or the evidence says that the tool was not run. A keyed call is only
// safe with the same key.
func (s Safety) SafeRepeat(d observe.Delivery) bool {
	return s.Harmless() || d == observe.NotSent || d == observe.Refused
}
