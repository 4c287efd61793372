package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A report is what the comparison of one server came to.
type report struct {
	server *server
	bare   *visit
	rows   []row
	list   []string // differences in the list of tools
	absent []string // tools that are not called
}

// A row is one call.
type row struct {
	call
	bare, wrapped answer
	differ        []string
}

// compare visits a server with both clients.
func compare(ctx context.Context, s *server) (*report, error) {
	bare, err := s.visit(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("the bare client: %w", err)
	}
	wrapped, err := s.visit(ctx, true)
	if err != nil {
		return nil, fmt.Errorf("the wrapped client: %w", err)
	}
	r := &report{server: s, bare: bare, list: differences("tools", bare.list, wrapped.list)}
	if bare.version != wrapped.version {
		r.list = append(r.list, fmt.Sprintf("protocol version: bare %s, wrapped %s", bare.version, wrapped.version))
	}
	for i, c := range s.calls {
		r.rows = append(r.rows, newRow(c, bare.answers[i], wrapped.answers[i]))
	}
	for _, tool := range bare.tools {
		if !slices.ContainsFunc(s.calls, func(c call) bool { return c.tool == tool }) {
			r.absent = append(r.absent, tool)
		}
	}
	return r, nil
}

// newRow compares two answers. Where the bare client has a result, the wrapped one must
// have the same; where it has none, the wrapped one must have a name for that.
func newRow(c call, bare, wrapped answer) row {
	r := row{call: c, bare: bare, wrapped: wrapped}
	switch {
	case wrapped.record == nil:
		r.differ = []string{"no record of the wrapped call"}
	case bare.err == nil && wrapped.err == nil:
		r.differ = differences("result", bare.value, wrapped.value)
	case bare.err == nil:
		r.differ = []string{fmt.Sprintf("the wrapped client alone fails: %v", wrapped.err)}
	case wrapped.err != nil && !named(wrapped.err):
		r.differ = []string{fmt.Sprintf("the failure has no name: %v", wrapped.err)}
	}
	return r
}

// wrong is the error for everything that is not as it should be, or nil.
func (r *report) wrong() error {
	var all []error
	if len(r.rows) == 0 {
		all = append(all, errors.New("nothing was called"))
	}
	for _, d := range r.list {
		all = append(all, errors.New(d))
	}
	for _, tool := range r.absent {
		all = append(all, fmt.Errorf("tool %s is not called", tool))
	}
	for _, row := range r.rows {
		for _, d := range row.differ {
			all = append(all, fmt.Errorf("%s: %s", row.title(), d))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", r.server, errors.Join(all...))
}

// title names a call with what is done to it.
func (c call) title() string { return c.tool + " " + c.args + c.circumstances() }

func (c call) circumstances() (s string) {
	if c.deadline > 0 {
		s += fmt.Sprintf(", deadline %s", c.deadline)
	}
	if c.kill {
		s += ", the server is killed meanwhile"
	}
	return s
}

// got says in a word what the host got.
func (a answer) got() string {
	switch {
	case a.err != nil:
		return "error"
	case a.isError:
		return "result, isError"
	}
	return "result"
}

// verdict says what the comparison came to.
func (r row) verdict() string {
	switch {
	case len(r.differ) > 0:
		return "DIFFERS"
	case r.bare.err != nil:
		return "named"
	}
	return "same"
}

func (r row) outcome() string {
	if r.wrapped.record == nil {
		return "none"
	}
	return fmt.Sprintf("%s, %s", r.wrapped.record.Outcome, r.wrapped.record.Delivery)
}

func (r *report) print(out io.Writer) {
	fmt.Fprintf(out, "%s (MCP %s)\n", r.server, r.bare.version)
	for _, row := range r.rows {
		fmt.Fprintf(out, "  %-7s bare: %-15s wrapped: %-30s %s\n", row.verdict(), row.bare.got(), row.outcome(), row.title())
		if row.bare.err != nil {
			fmt.Fprintf(out, "          bare: %v\n", row.bare.err)
		}
		for _, d := range row.differ {
			fmt.Fprintf(out, "          %s\n", strings.ReplaceAll(d, "\n", "\n          "))
		}
	}
}
