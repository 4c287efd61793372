// Realservers calls the tools of MCP servers that other people wrote twice, with the SDK's
// client bare and with surecall around it, and compares value by value what the host gets:
//
//	realservers [-servers example/realservers] [-table FILE]
//
// The servers and their Node are what npm ci has put under the -servers directory: see
// make realservers. Each client has a server process and a directory of its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns 0 if every call came to the same, 1 if not, 2 if it is called wrongly or the
// servers are not installed.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("realservers", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String("servers", "example/realservers", "the `directory` in which npm ci was run")
	table := flags.String("table", "", "the `file` to write the table to, if nothing differs")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	inst, err := find(*dir)
	if err != nil {
		fmt.Fprintf(stderr, "realservers: %v\n", err)
		return 2
	}
	reports, err := compareAll(ctx, servers(inst), stdout)
	if err == nil && *table != "" {
		err = os.WriteFile(*table, []byte(page(inst, reports)), 0o644)
	}
	if err != nil {
		fmt.Fprintf(stderr, "realservers: %v\n", err)
		return 1
	}
	return 0
}

// compareAll tells of every server; the error holds all that is not as it should be.
func compareAll(ctx context.Context, all []*server, out io.Writer) ([]*report, error) {
	var reports []*report
	var wrong []error
	for _, s := range all {
		r, err := compare(ctx, s)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", s, err))
			continue
		}
		r.print(out)
		wrong = append(wrong, r.wrong())
		reports = append(reports, r)
	}
	return reports, errors.Join(wrong...)
}
