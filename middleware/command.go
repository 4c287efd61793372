package middleware

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// terminateDuration is the SDK's own default (go-sdk v1.8.0).
const terminateDuration = 5 * time.Second

// killDuration is how long a killed process has to be gone.
const killDuration = 10 * time.Second

// outputGrace is how long the output of a process that has exited may be silent before
// it counts as ended; outputGraces is how many such spans there are at most.
const (
	outputGrace  = 200 * time.Millisecond
	outputGraces = 10
)

// A CommandTransport is an [mcp.Transport] that starts a server and talks to it over
// its standard input and output, guarded like an [IOTransport]. It takes the place of
// [mcp.CommandTransport] and ends the server as that does. Make it with
// [Stack.CommandTransport], or without the middlewares by its fields alone. It is for
// one Connect. In shadow mode it is the SDK's own, which guards nothing.
//
// The session ends with the process, also where another process that it has started
// still holds its output: what is left in the pipe is read for a moment, and calls in
// flight are then told.
type CommandTransport struct {
	// Command is the server, not started, with Stdin and Stdout unset. A WaitDelay of
	// 0 becomes 200 ms: if Stderr is not a file, a process that the server leaves behind
	// may hold it open, and the end of the session with it.
	Command *exec.Cmd
	// TerminateDuration is how long the session's Close waits for the server to end by
	// itself once its input is closed, and again after SIGTERM, before it is killed.
	// Default 5 s.
	TerminateDuration time.Duration

	core *core
}

// CommandTransport returns a guarded transport that starts cmd.
func (s *Stack) CommandTransport(cmd *exec.Cmd) *CommandTransport {
	return &CommandTransport{Command: cmd, core: s.core}
}

// Connect implements [mcp.Transport]: it starts the server.
func (t *CommandTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	if t.Command == nil {
		return nil, errors.New("surecall: CommandTransport: no Command")
	}
	if t.core.isShadow() {
		return (&mcp.CommandTransport{Command: t.Command, TerminateDuration: t.TerminateDuration}).Connect(ctx)
	}
	p, err := start(t.Command)
	if err != nil {
		return nil, err
	}
	p.patience = t.TerminateDuration
	if p.patience <= 0 {
		p.patience = terminateDuration
	}
	return newConnection(t.core, p.stdout, p.stdin, p), nil
}

// A process is a server that was started.
type process struct {
	command  *exec.Cmd
	stdin    io.WriteCloser
	stdout   *output
	patience time.Duration
	exited   chan struct{} // closed when the process has ended, with
	err      error         // its error
}

// start starts a server. The pipe of its output is one of ours: that of
// [exec.Cmd.StdoutPipe] is closed at the exit, with what is still in it.
func start(cmd *exec.Cmd) (*process, error) {
	if cmd.Stdout != nil {
		return nil, errors.New("surecall: CommandTransport: Stdout of the Command is set")
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		_ = stdin.Close()
		return nil, err
	}
	defer w.Close()
	cmd.Stdout = w
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = outputGrace
	}
	if err := cmd.Start(); err != nil {
		_ = r.Close()
		return nil, err
	}
	p := &process{command: cmd, stdin: stdin, stdout: &output{File: r}, exited: make(chan struct{})}
	go p.wait()
	return p, nil
}

// wait waits for the process, and then ends its output.
func (p *process) wait() {
	p.err = p.command.Wait()
	close(p.exited)
	p.stdout.drain()
}

// output is what a process writes.
type output struct {
	*os.File
	reads atomic.Int64
}

// Read reports the end as io.EOF, whoever brought it about.
func (o *output) Read(b []byte) (int, error) {
	n, err := o.File.Read(b)
	o.reads.Add(1)
	if errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

// drain closes the output once nothing more comes: the process has exited, but one that
// it has left behind may hold the pipe open.
func (o *output) drain() {
	for range outputGraces {
		before := o.reads.Load()
		time.Sleep(outputGrace)
		if o.reads.Load() == before {
			break
		}
	}
	_ = o.Close()
}

var errUnresponsive = errors.New("surecall: the server's process does not end")

// Close ends the process (MCP, stdio transport, shutdown): it closes its input, which
// also ends a write under way, and waits; then it asks with SIGTERM and waits; then it
// kills it. The error is that of the process, such as its exit status.
func (p *process) Close() error {
	_ = p.stdin.Close()
	defer p.stdout.Close()
	for _, insist := range []func(){p.terminate, p.kill} {
		select {
		case <-p.exited:
			return p.err
		case <-time.After(p.patience):
			insist()
		}
	}
	select {
	case <-p.exited:
		return p.err
	case <-time.After(killDuration): // the process cannot refuse, but the system is slow, or it hangs in a device
		return errUnresponsive
	}
}

// terminate asks the process to end, or kills it where one cannot ask (Windows).
func (p *process) terminate() {
	if p.command.Process.Signal(syscall.SIGTERM) != nil {
		p.kill()
	}
}

func (p *process) kill() { _ = p.command.Process.Kill() }
