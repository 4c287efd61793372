// Gateway is one MCP server in front of several: agents see the tools of all of them,
// each under the name of its upstream (fs_read_file), and every call to an upstream goes
// through one surecall stack under one policy file.
//
//	gateway [-listen ADDRESS] [-policy FILE] NAME=URL|NAME=COMMAND...
//
// It prints the record of each upstream call on standard output, one JSON object a line,
// and serves until interrupted. README.md has a set of commands to try.
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
	"sync"
	"syscall"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program: exit status 0 after an orderly end, 1 if it cannot serve, 2 if it
// is called wrongly.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
	flags.SetOutput(stderr)
	listen := flags.String("listen", "127.0.0.1:8765", "TCP `address` to listen on; port 0 takes a free one")
	file := flags.String("policy", "example/gateway/policy.yaml", "the policy `file`")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	specs, err := parseSpecs(flags.Args())
	if err != nil {
		fmt.Fprintf(stderr, "gateway: %v\n", err)
		return 2
	}
	rules, err := policy.Load(*file)
	if err != nil {
		fmt.Fprintf(stderr, "gateway: %v\n", err)
		return 2
	}
	stack := middleware.New(&middleware.Options{Policy: rules, OnRecord: printer(stdout)})
	g := newGateway(stack, specs, log.New(stderr, "gateway: ", 0))
	if err := serve(ctx, g, *listen, stderr); err != nil {
		fmt.Fprintf(stderr, "gateway: %v\n", err)
		return 1
	}
	return 0
}

// serve runs the gateway on an address until ctx ends.
func serve(ctx context.Context, g *gateway, address string, stderr io.Writer) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{Handler: g.handler()}
	// Agents' streams never end by themselves, so that there is nothing to wait for.
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	var upstreams sync.WaitGroup
	upstreams.Go(func() { g.run(ctx) })
	fmt.Fprintf(stderr, "gateway: serving http://%s/mcp\n", listener.Addr())
	err = server.Serve(listener)
	cancel()
	upstreams.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// printer writes records, one a line.
func printer(out io.Writer) func(context.Context, *observe.Record) {
	var mu sync.Mutex
	lines := json.NewEncoder(out)
	return func(_ context.Context, r *observe.Record) {
		mu.Lock()
		defer mu.Unlock()
		_ = lines.Encode(r)
	}
}
