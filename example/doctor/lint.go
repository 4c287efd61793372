package main

import (
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/internal/plaintext"
	"github.com/surecall/surecall/policy"
)

// errUnread says that a file could not be read, so that nothing is known of it.
var errUnread = errors.New("the file cannot be read")

// checkFile checks the file of -lint and prints all that is wrong with it, one problem a
// line. The error says so in one line.
func (d *doctor) checkFile() error {
	if d.lint == "" {
		return nil
	}
	p, err := policy.Load(d.lint)
	all := problems(err)
	switch {
	case err != nil && all == nil:
		return fmt.Errorf("-lint: %w: %w", errUnread, err)
	case err != nil:
		for _, problem := range all {
			fmt.Fprintln(d.info, problem)
		}
		return fmt.Errorf("-lint: %d %s in %s", len(all), plural(len(all), "problem"), d.lint)
	}
	d.linted = p
	fmt.Fprintf(d.info, "%s: nothing is wrong, %d %s\n", d.lint, len(p.Rules), plural(len(p.Rules), "rule"))
	return nil
}

// warn compares the file of -lint with the server's tools. What it finds need not be
// wrong.
func (d *doctor) warn(tools []*mcp.Tool) {
	if d.linted == nil || !d.hasServer() {
		return
	}
	listed := make([]policy.ListedTool, len(tools))
	for i, t := range tools {
		listed[i] = policy.ListedTool{Name: t.Name, Annotations: d.annotations(t)}
	}
	for _, w := range d.linted.Lint(d.name(), listed) {
		fmt.Fprintf(d.info, "warning: %s\n", plaintext.OneLine(w.String()))
	}
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
