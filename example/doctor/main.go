// Doctor makes tool calls to any MCP server through this library and says in plain
// words what each of them came to:
//
//	go run ./example/doctor -endpoint http://127.0.0.1:3001/mcp -list -call 'echo={"message":"hi"}'
//	go run ./example/doctor -command 'node server.js' -call 'echo={"message":"hi"}' -json
//
// It ends with status 0 when every call ended in TOOL_SUCCESS, 1 when one did not or a
// policy file is wrong, 2 when nothing could be run; on 1 and 2 one line on standard
// error says why. See
// README.md for the flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const (
	exitOK     = 0 // every call ended in TOOL_SUCCESS
	exitFailed = 1 // a call did not, or the list, or a policy file is wrong
	exitUnrun  = 2 // nothing could be run
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the calls in an orderly way, the second one the program.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the program: it returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	stderr = shared(stderr)
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return exitOK
	case err != nil:
		complain(stderr, err)
		return exitUnrun
	}
	out := &output{Writer: stdout}
	d := newDoctor(o, stdin, out, stderr)
	defer d.close()
	if err := d.checkFile(); err != nil {
		complain(stderr, err)
		if errors.Is(err, errUnread) {
			return exitUnrun
		}
		return exitFailed
	}
	if d.hasServer() {
		if err := d.connect(ctx); err != nil {
			complain(stderr, err)
			return exitUnrun
		}
	}
	err = d.examine(ctx)
	if err = both(err, out.err); err != nil {
		complain(stderr, err)
		return exitFailed
	}
	return exitOK
}

// An output remembers that it could not be written, since a record that nobody got
// is no success.
type output struct {
	io.Writer
	err error
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("stdout cannot be written: %w", err)
	}
	return n, err
}

func complain(stderr io.Writer, err error) { fmt.Fprintf(stderr, "doctor: %v\n", err) }
