package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"github.com/surecall/surecall/policy"
)

// usage is 80 columns wide.
const usage = `Usage: doctor -endpoint URL | -command 'prog args'  [flags]
       doctor [-policy FILE] [-server NAME] -explain TOOL
       doctor -lint FILE

  -endpoint URL       the server's Streamable HTTP endpoint
  -command 'prog x'   or a server to start and talk to over stdin and stdout;
                      split into words as a shell does, with quotes
  -call NAME[=JSON]   call a tool with a JSON object as arguments; repeatable:
                      the calls are made in order, in one session
  -list               list the tools with their safety and the rule that gave it
  -safety GLOB=CLASS  how safe a repeat of these tools is: read_only,
                      idempotent, keyed, unsafe; repeatable, the first that
                      matches counts; default unsafe: what may have run is
                      never repeated
  -policy FILE        the policy for the calls, from a file; -safety and
                      -surface count before its rules
  -server NAME        what the policy's rules call the server; default its
                      endpoint, or the name of the program
  -explain TOOL       print what the policy comes to for a tool: every setting
                      with the place it comes from, and what is done after
                      every outcome; repeatable; needs no server
  -lint FILE          check a policy file; with a server, warn also of rules
                      that match none of its tools, and of tools whose safety
                      no rule sets
  -protocol VERSION   protocol version to ask for, such as 2025-11-25;
                      default the newest
  -header 'N: value'  add an HTTP header to every request; repeatable
  -timeout 30s        time for connecting, for the list and for each call
  -parallel N         calls under way at a time; default 1
  -surface WHO        who is told of a failed call: caller (an error) or model
                      (a text for the model, which is shown); default caller
  -elicit HOW         what to answer when the server asks for input: accept
                      (fills forms from their defaults or zero values),
                      decline, or ask (you, on a terminal; else decline);
                      default ask. An address is never opened.
  -json               one record a line on stdout, everything else to stderr

Exit status: 0 every call ended in TOOL_SUCCESS, 1 one did not, or the file of
-lint is wrong, 2 nothing could be run.
`

// options are what the command line asks for.
type options struct {
	endpoint *url.URL // or
	command  []string
	calls    []request
	list     bool
	explain  []string
	lint     string // a file
	server   string // the policy's name for it, if another than its own
	policy   *policy.Policy
	protocol string
	headers  http.Header
	timeout  time.Duration
	parallel int
	elicit   string
	json     bool
}

// label names a server that has no endpoint.
func (o *options) label() string {
	if len(o.command) == 0 {
		return ""
	}
	return filepath.Base(o.command[0])
}

// hasServer reports whether there is a server to talk to.
func (o *options) hasServer() bool { return o.endpoint != nil || len(o.command) > 0 }

// readsPolicy reports whether something is asked that needs no server.
func (o *options) readsPolicy() bool { return len(o.explain) > 0 || o.lint != "" }

// given are the flags as they were written.
type given struct {
	endpoint, command, protocol, surface, policy string
	calls, safeties, headers                     []string
}

// parse reads the command line. Its errors hold no header value and no query of an
// endpoint.
func parse(args []string) (*options, error) {
	o, g := &options{}, &given{}
	f := flag.NewFlagSet("doctor", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	f.StringVar(&g.endpoint, "endpoint", "", "")
	f.StringVar(&g.command, "command", "", "")
	f.StringVar(&g.protocol, "protocol", "", "")
	f.StringVar(&g.surface, "surface", "", "")
	f.Func("call", "", appendTo(&g.calls))
	f.Func("safety", "", appendTo(&g.safeties))
	f.StringVar(&g.policy, "policy", "", "")
	f.StringVar(&o.server, "server", "", "")
	f.Func("explain", "", appendTo(&o.explain))
	f.StringVar(&o.lint, "lint", "", "")
	f.Func("header", "", appendTo(&g.headers))
	f.BoolVar(&o.list, "list", false, "")
	f.BoolVar(&o.json, "json", false, "")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "")
	f.IntVar(&o.parallel, "parallel", 1, "")
	f.StringVar(&o.elicit, "elicit", elicitAsk, "")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: every word belongs to a flag, -h lists them", f.Arg(0))
	}
	return o, o.take(g)
}

// appendTo accepts any value: the flag package would quote a refused one, and a
// header's must not be shown.
func appendTo(all *[]string) func(string) error {
	return func(s string) error {
		*all = append(*all, s)
		return nil
	}
}

// take checks what was given and keeps what it means.
func (o *options) take(g *given) error {
	for _, step := range []func(*given) error{
		o.takeServer, o.takeCalls, o.takeHeaders, o.takePolicy, o.takeRest,
	} {
		if err := step(g); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) takeServer(g *given) error {
	switch {
	case g.endpoint == "" && g.command == "" && len(g.calls) == 0 && !o.list && o.readsPolicy():
		return nil
	case g.endpoint == "" && g.command == "":
		return errors.New("no server: -endpoint or -command is needed, -h tells more")
	case g.endpoint != "" && g.command != "":
		return errors.New("both -endpoint and -command: there is one server at a time")
	case g.endpoint != "":
		u, err := url.Parse(g.endpoint)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return errors.New("-endpoint is not the address of an HTTP server: http://host/path or https://host/path")
		}
		o.endpoint = u
		return nil
	}
	words, err := splitWords(g.command)
	if err != nil {
		return fmt.Errorf("-command: %w", err)
	}
	o.command = words
	return nil
}

func (o *options) takeCalls(g *given) error {
	if len(g.calls) == 0 && !o.list && !o.readsPolicy() {
		return errors.New("nothing to do: -call or -list is needed, -h tells more")
	}
	for i, s := range g.calls {
		r, err := parseRequest(s)
		if err != nil {
			return fmt.Errorf("-call %d (%s): %w", i+1, plain(r.name, 40), err)
		}
		o.calls = append(o.calls, r)
	}
	return nil
}

func (o *options) takeHeaders(g *given) error {
	if len(g.headers) > 0 && o.endpoint == nil {
		return errors.New("-header needs -endpoint: there is no HTTP to a -command")
	}
	o.headers = http.Header{}
	for i, s := range g.headers {
		name, value, err := parseHeader(s)
		if err != nil {
			return fmt.Errorf("-header %d: %w", i+1, err)
		}
		o.headers.Add(name, value)
	}
	return nil
}

func (o *options) takeRest(g *given) error {
	switch {
	case o.timeout <= 0:
		return errors.New("-timeout must be more than 0")
	case o.parallel < 1:
		return errors.New("-parallel must be 1 or more")
	case !slices.Contains([]string{elicitAccept, elicitDecline, elicitAsk}, o.elicit):
		return fmt.Errorf("-elicit %q is not one of accept, decline, ask", o.elicit)
	}
	if g.protocol == "" {
		return nil
	}
	// The versions of MCP are dates, and the SDK compares them as text.
	if _, err := time.Parse(time.DateOnly, g.protocol); err != nil {
		return fmt.Errorf("-protocol %q is not a version: they are dates, such as 2025-11-25", g.protocol)
	}
	o.protocol = g.protocol
	return nil
}
