package main

import (
	"errors"
	"fmt"
	"slices"
)

// difference says in what the runs of the two clients differ, or that there was
// nothing to compare.
func difference(bare, wrapped *result) error {
	var all []error
	if bare.judged() == 0 {
		all = append(all, errors.New("nothing was checked"))
	}
	if bare.exit != wrapped.exit {
		all = append(all, fmt.Errorf("the referee ended with status %d for the bare client, %d for the wrapped one", bare.exit, wrapped.exit))
	}
	if bare.told != wrapped.told {
		all = append(all, fmt.Errorf("the host was told\n%s\nby the bare client, and by the wrapped one\n%s", indent(bare.told), indent(wrapped.told)))
	}
	all = append(all, missing("the bare client", bare.checks, wrapped.checks), missing("the wrapped client", wrapped.checks, bare.checks))
	return errors.Join(all...)
}

// missing tells the checks of one run that the other has not, or less often. Their
// order counts for nothing: two requests may pass each other.
func missing(who string, of, from []check) error {
	from = slices.Clone(from)
	var all []error
	for _, c := range of {
		if i := slices.Index(from, c); i >= 0 {
			from = slices.Delete(from, i, i+1)
			continue
		}
		all = append(all, fmt.Errorf("for %s alone: %s %s: %s", who, c.Status, c.ID, c.Description))
	}
	return errors.Join(all...)
}

// judged counts what the referee looked at.
func (r *result) judged() int { return len(r.checks) - r.count("INFO") }

func (r *result) count(status string) (n int) {
	for _, c := range r.checks {
		if c.Status == status {
			n++
		}
	}
	return n
}

// String tells a result in a few words.
func (r *result) String() string {
	s := fmt.Sprintf("%d of %d passed, %d events", r.count("SUCCESS"), r.judged(), r.count("INFO"))
	if r.exit != 0 {
		s += fmt.Sprintf(", status %d", r.exit)
	}
	return s
}
