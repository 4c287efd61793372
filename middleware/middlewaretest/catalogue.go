package middlewaretest

import "slices"

// Faults returns the catalogue: one instance of each kind of fault, each with its
// expectation. Names are unique. The caller may change what it gets.
func Faults() []Fault {
	return slices.Concat(
		statusFaults(), connectionFaults(), bodyFaults(), errorFaults(), envelopeFaults(),
		resultFaults(), streamFaults(), sessionFaults(), roundFaults(),
	)
}

// FaultNamed returns the fault of the catalogue with that name.
func FaultNamed(name string) (Fault, bool) {
	all := Faults()
	i := slices.IndexFunc(all, func(f Fault) bool { return f.Name == name })
	if i < 0 {
		return Fault{}, false
	}
	return all[i], true
}
