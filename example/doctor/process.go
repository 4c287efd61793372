package main

import (
	"context"
	"io"
	"os/exec"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// patience is how long a started server may take to end by itself, and again
	// once it has been asked to with SIGTERM. Then it is killed.
	patience = 2 * time.Second
	// grace is how long a call may go on after its time is over.
	grace = 250 * time.Millisecond
)

// A process is a server that we start and talk to over its pipes. It ends with the
// session.
//
// A server that does not read blocks the SDK's write for ever, whatever the
// context of the call says (go-sdk v1.8.0). Nobody can take half a message back, so
// the server is then ended, and the session with it.
type process struct {
	mcp.CommandTransport
	conn mcp.Connection
}

func newProcess(command []string, stderr io.Writer) *process {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = stderr
	// A grandchild may keep the pipe of stderr open.
	cmd.WaitDelay = patience
	return &process{CommandTransport: mcp.CommandTransport{Command: cmd, TerminateDuration: patience}}
}

// Connect starts the server.
func (p *process) Connect(ctx context.Context) (conn mcp.Connection, err error) {
	p.conn, err = p.CommandTransport.Connect(ctx)
	return p.conn, err
}

// watch ends the server if the call goes on after its context has ended. The caller
// says with stop that the call is over.
func (p *process) watch(ctx context.Context) (stop func()) {
	over := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		select {
		case <-over:
		case <-time.After(grace):
			// Killed first: Close waits for the server to end.
			_ = p.Command.Process.Kill()
			_ = p.conn.Close()
		}
	})
	return func() {
		unhook()
		close(over)
	}
}
