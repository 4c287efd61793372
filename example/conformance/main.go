// Conformance is a client for the official MCP conformance referee
// (@modelcontextprotocol/conformance), which starts it with the URL of a test server as
// its last argument and the scenario's name in MCP_CONFORMANCE_SCENARIO:
//
//	conformance [-bare] URL
//
// The SDK's client is wrapped by surecall under its default policy, or bare. What the
// host was told is printed, so that both can be compared: see make conformance.
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
	os.Exit(run(ctx, os.Args[1:], os.Getenv("MCP_CONFORMANCE_SCENARIO"), os.Stdout, os.Stderr))
}

// run plays one scenario. It returns 0 after its end, 1 if a call failed, 2 if it is
// called wrongly.
func run(ctx context.Context, args []string, name string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.SetOutput(stderr)
	bare := flags.Bool("bare", false, "use the SDK's client without surecall")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	play, known := scenarios[name]
	if !known || flags.NArg() != 1 {
		fmt.Fprintf(stderr, "conformance: MCP_CONFORMANCE_SCENARIO is %q, which is not one of mine; or there is not one URL but %q\n", name, flags.Args())
		return 2
	}
	c, err := connect(ctx, flags.Arg(0), *bare)
	if err != nil {
		fmt.Fprintf(stderr, "conformance: connecting: %v\n", err)
		return 1
	}
	defer c.close()
	if err := play(ctx, c, stdout); err != nil {
		fmt.Fprintf(stderr, "conformance: %s: %v\n", name, err)
		return 1
	}
	return 0
}
