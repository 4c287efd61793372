package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/policy"
)

// A doctor examines one server in one session.
type doctor struct {
	*options
	stdout, stderr io.Writer
	info           io.Writer // what is not a record
	stack          *middleware.Stack
	answerer       *answerer

	linted       *policy.Policy // the file of -lint
	session      *mcp.ClientSession
	undiscovered error  // of server/discover
	release      func() // lets go of what is below the session
}

func newDoctor(o *options, stdin io.Reader, stdout, stderr io.Writer) *doctor {
	d := &doctor{
		options: o, stdout: stdout, stderr: stderr, info: stdout,
		answerer: newAnswerer(o.elicit, stdin, stderr),
		release:  func() {},
	}
	if o.json {
		d.info = stderr
	}
	d.stack = middleware.New(&middleware.Options{
		Policy:   o.policy,
		Client:   clientName + "@" + version(),
		Server:   o.label(),
		OnRecord: keep,
	})
	return d
}

// examine tells of the tools and makes the calls, as asked. The error says in one line
// what did not go well.
func (d *doctor) examine(ctx context.Context) error {
	tools, unlisted := d.tools(ctx)
	if unlisted == nil {
		d.warn(tools)
		d.showList(tools)
		d.explainAll(tools)
	}
	return both(unlisted, d.callAll(ctx))
}

// both joins errors in one line; nil where there are none.
func both(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return fmt.Errorf("%w; %w", a, b)
}

// close ends the session, and with it a server that we started.
func (d *doctor) close() {
	if d.session != nil {
		// The calls have their outcomes; how the session ended adds nothing.
		_ = d.session.Close()
	}
	d.release()
	d.answerer.close()
}

// interrupted reports whether the person at the keyboard has had enough.
func interrupted(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// shared makes a writer safe for concurrent use; a file is so by itself, and stays
// what it is for a child that writes to it.
func shared(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok {
		return f
	}
	return &lockedWriter{w: w}
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
