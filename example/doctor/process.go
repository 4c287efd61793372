package main

import (
	"io"
	"os/exec"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// patience is how long a started server may take to end by itself, and again
	// once it has been asked to with SIGTERM. Then it is killed.
	patience = 2 * time.Second
	// grace is what the session's end may take beyond that.
	grace = 250 * time.Millisecond
)

// A process is a server that we start and talk to over its pipes. It ends with the
// session.
//
// A server that does not read blocks the SDK's write, and with it the end of the
// session, for ever (go-sdk v1.8.0). Nobody can take half a message back, so the
// server is then killed.
type process struct{ mcp.CommandTransport }

func newProcess(command []string, stderr io.Writer) *process {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = stderr
	// A grandchild may keep the pipe of stderr open.
	cmd.WaitDelay = patience
	return &process{CommandTransport: mcp.CommandTransport{Command: cmd, TerminateDuration: patience}}
}

// closing gives the session's end the time that a server may take, and then kills
// the server. The caller says with done that the end has come.
func (p *process) closing() (done func()) {
	timer := time.AfterFunc(2*patience+grace, func() { _ = p.Command.Process.Kill() })
	return func() { timer.Stop() }
}
