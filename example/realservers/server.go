package main

import (
	"context"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
)

// A server is one that is compared.
type server struct {
	name, transport string
	// start starts a fresh process for one client.
	start starter
	calls []call
}

func (s *server) String() string { return fmt.Sprintf("%s over %s", s.name, s.transport) }

// A starter starts a server for one client.
type starter func(context.Context) (*process, error)

// A call is what both clients ask for, in this order and in one session.
type call struct {
	tool string
	args string // a JSON object; {dir} stands for the process's directory
	// deadline is the caller's, or 0.
	deadline time.Duration
	// kill ends the server's process while the call is under way.
	kill bool
}

// killAfter is when a server is killed that is at work for much longer.
const killAfter = 700 * time.Millisecond

// A process is a server that runs for one client.
type process struct {
	dir string
	// connect returns the way to it, through a stack or, where that is nil, bare.
	connect func(*middleware.Stack) mcp.Transport
	kill    func()
	close   func()
	// hide are texts of this process in what it says, and what stands for each.
	hide map[string]string
}
