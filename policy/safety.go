package policy

// Safety says what a repeat of a tool can do. It is the operator's word about
// the tool; a server's own annotations count only where the policy trusts the
// server (see [Settings.TrustAnnotations]).
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
func (s Safety) Valid() bool {
	switch s {
	case ReadOnly, Idempotent, Keyed, Unsafe:
		return true
	}
	return false
}

// Harmless reports whether a repeat of an attempt whose delivery is unknown
// cannot double an effect.
func (s Safety) Harmless() bool { return s == ReadOnly || s == Idempotent || s == Keyed }
