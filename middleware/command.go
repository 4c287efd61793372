package middleware

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// terminateDuration is the SDK's own default (go-sdk v1.8.0).
const terminateDuration = 5 * time.Second

// killDuration is how long a killed process has to be gone.
const killDuration = 10 * time.Second

// A CommandTransport is an [mcp.Transport] that starts a server and talks to it over
// its standard input and output, guarded like an [IOTransport]. It takes the place of
// [mcp.CommandTransport] and ends the server as that does. Make it with
// [Stack.CommandTransport], or without the middlewares by its fields alone. It is for
// one Connect. In shadow mode it is the SDK's own, which guards nothing.
type CommandTransport struct {
	// Command is the server, not started, with Stdin and Stdout unset. Set its WaitDelay
	// if its Stderr is not a file: a process that the server leaves behind may hold
	// stderr open, and the end of the session with it.
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
	stdout, err := t.Command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stdin, err := t.Command.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := t.Command.Start(); err != nil {
		return nil, err
	}
	p := &process{t.Command, stdin, stdout, t.TerminateDuration}
	if p.patience <= 0 {
		p.patience = terminateDuration
	}
	return newConnection(t.core, stdout, stdin, p), nil
}

// A process is a server that was started.
type process struct {
	command  *exec.Cmd
	stdin    io.WriteCloser
	stdout   io.ReadCloser
	patience time.Duration
}

var errUnresponsive = errors.New("surecall: the server's process does not end")

// Close ends the process (MCP, stdio transport, shutdown): it closes its input, which
// also ends a write under way, and waits; then it asks with SIGTERM and waits; then it
// kills it. The error is that of the process, such as its exit status.
func (p *process) Close() error {
	_ = p.stdin.Close()
	defer p.stdout.Close()
	exited := make(chan error, 1)
	go func() { exited <- p.command.Wait() }()
	for _, insist := range []func(){p.terminate, p.kill} {
		select {
		case err := <-exited:
			return err
		case <-time.After(p.patience):
			insist()
		}
	}
	select {
	case err := <-exited:
		return err
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
