// Kitchen runs the fault-injecting MCP server of package middlewaretest by
// itself, for clients in any language:
//
//	go run ./example/kitchen -addr 127.0.0.1:8080 -scenario errors.jsonrpc_error
//
// It prints the URL of the MCP endpoint on standard output and serves until
// interrupted. Beside /mcp there are
//
//	GET /scenario     the selected scenario, and all that there are
//	PUT /scenario     select one: {"name":"...","config":{...}}; it holds from the next session
//	GET /ledger       what was received and what was executed
//	DELETE /ledger    forget it
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program: exit status 0 after an orderly end, 1 if it cannot serve,
// 2 if it is called wrongly.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parse(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "kitchen: %v\n", err)
		return 2
	}
	if c.list {
		list(stdout)
		return 0
	}
	s := middlewaretest.NewUnstarted(&c.options)
	defer s.Close()
	if err := s.Select(c.scenario, json.RawMessage(c.config)); err != nil {
		fmt.Fprintf(stderr, "kitchen: %v\n", err)
		return 2
	}
	if err := serve(ctx, s, c.addr, stdout); err != nil {
		fmt.Fprintf(stderr, "kitchen: %v\n", err)
		return 1
	}
	return 0
}

type command struct {
	addr, scenario, config string
	list                   bool
	options                middlewaretest.Options
}

func parse(args []string, usage io.Writer) (*command, error) {
	c := &command{}
	o := &c.options
	f := flag.NewFlagSet("kitchen", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&c.addr, "addr", "127.0.0.1:0", "TCP `address` to listen on; port 0 takes a free one")
	f.StringVar(&o.Version, "version", middlewaretest.Version20260728, "MCP protocol `version`: 2026-07-28 or 2025-11-25")
	f.StringVar(&c.scenario, "scenario", middlewaretest.Baseline, "`name` of the scenario; see -list")
	f.StringVar(&c.config, "config", "", "the scenario's config, a `JSON` object")
	f.BoolVar(&c.list, "list", false, "list the scenarios and end")
	f.BoolVar(&o.Sessions, "sessions", false, "hand out session ids (2025-11-25)")
	f.BoolVar(&o.Stream, "stream", false, "answer tools/call with text/event-stream")
	f.BoolVar(&o.EventIDs, "event-ids", false, "give ids to events; a GET resumes a stream (2025-11-25)")
	f.BoolVar(&o.StandaloneSSE, "standalone", false, "offer the standalone stream on GET (2025-11-25)")
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.SetOutput(usage)
		f.Usage()
		return nil, err
	case err != nil:
		return nil, err
	case f.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.Version != middlewaretest.Version20260728 && o.Version != middlewaretest.Version20251125:
		return nil, fmt.Errorf("-version must be 2026-07-28 or 2025-11-25, not %q", o.Version)
	case c.config != "" && !json.Valid([]byte(c.config)):
		return nil, errors.New("-config is not JSON")
	}
	return c, nil
}

func list(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range middlewaretest.Scenarios() {
		fmt.Fprintf(t, "%s\t%s\t%s\n", s.Name, s.Config, s.Meaning)
	}
	_ = t.Flush()
}

// serve listens until ctx ends.
func serve(ctx context.Context, s *middlewaretest.Server, addr string, stdout io.Writer) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	h := &http.Server{Handler: routes(s), ErrorLog: log.New(io.Discard, "", 0)}
	defer context.AfterFunc(ctx, func() { _ = h.Close() })()
	fmt.Fprintf(stdout, "http://%s/mcp\n", l.Addr())
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
