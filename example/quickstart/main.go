// Quickstart makes a wrapped client call a server that misbehaves on purpose, and
// prints what became of each call:
//
//	go run ./example/quickstart
//
// Everything runs in this process, on the loopback interface, in a few seconds. It
// ends with status 1 if an unsafe tool ran twice, or if a call ended otherwise than
// calls.go says.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(run(context.Background(), os.Stdout, os.Stderr, calls())) }

// run makes the calls, prints the table, and returns the exit status.
func run(ctx context.Context, stdout, stderr io.Writer, calls []call) int {
	k, err := open(ctx)
	if err != nil {
		fmt.Fprintf(stderr, "quickstart: %v\n", err)
		return 1
	}
	defer k.close()
	rows := make([]row, 0, len(calls))
	for _, c := range calls {
		rows = append(rows, k.make(ctx, c))
	}
	printTable(stdout, rows)
	wrong := check(rows, k.server.Effects)
	for _, w := range wrong {
		fmt.Fprintf(stderr, "quickstart: %s\n", w)
	}
	if len(wrong) > 0 {
		return 1
	}
	fmt.Fprintf(stdout, "All %d calls ended as expected, and no unsafe tool ran twice for one call.\n", len(rows))
	return 0
}
