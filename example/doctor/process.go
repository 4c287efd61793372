package main

import (
	"io"
	"os/exec"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
)

// patience is how long a started server may take to end by itself, and again once it
// has been asked to with SIGTERM. Then it is killed.
const patience = 2 * time.Second

// newProcess is a server that we start and talk to over its pipes. It ends with the
// session.
func newProcess(stack *middleware.Stack, command []string, stderr io.Writer) mcp.Transport {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = stderr
	// A grandchild may keep the pipe of stderr open.
	cmd.WaitDelay = patience
	t := stack.CommandTransport(cmd)
	t.TerminateDuration = patience
	return t
}
