package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/observe"
)

const (
	openLimit = 15 * time.Second // for the handshake and the list of tools
	firstWait = time.Second      // before connecting again, doubled after each failure
	lastWait  = time.Minute
)

// An upstream is one server behind the gateway: a session that is kept open, and its
// tools among those of the gateway. Upstreams share no lock and no goroutine, so that
// none waits for another.
type upstream struct {
	name     string
	dial     func() mcp.Transport // one for each connection
	http     *http.Client         // nil without HTTP
	client   *mcp.Client
	agents   *mcp.Server
	progress *relay
	log      *log.Logger

	stale   chan struct{}                     // holds one item where the list of tools has changed
	session atomic.Pointer[mcp.ClientSession] // the latest, set before a tool is offered
	offered map[string]bool                   // names at the gateway; for keep alone
}

func newUpstream(stack *middleware.Stack, s spec, agents *mcp.Server, log *log.Logger) *upstream {
	u := &upstream{name: s.name, agents: agents, progress: newRelay(), log: log, stale: make(chan struct{}, 1), offered: map[string]bool{}}
	u.client = mcp.NewClient(&mcp.Implementation{Name: "surecall-gateway", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			select {
			case u.stale <- struct{}{}:
			default: // it will be looked at anyway
			}
		},
		ProgressNotificationHandler: u.progress.pass,
	})
	u.client.AddSendingMiddleware(stack.Middleware()...)
	if s.url == "" {
		u.dial = func() mcp.Transport {
			cmd := exec.Command(s.command[0], s.command[1:]...)
			cmd.Stderr = os.Stderr
			return stack.CommandTransport(cmd)
		}
		return u
	}
	u.http = stack.HTTPClient(nil)
	u.dial = func() mcp.Transport { return &mcp.StreamableClientTransport{Endpoint: s.url, HTTPClient: u.http} }
	return u
}

// keep connects, and connects again when the session has ended, until ctx ends. Over
// HTTP that is seldom: the stack renews a lost session below the SDK.
func (u *upstream) keep(ctx context.Context) {
	for wait := firstWait; ctx.Err() == nil; wait = min(2*wait, lastWait) {
		opened, err := u.serve(ctx)
		if ctx.Err() != nil {
			break
		}
		if opened {
			wait = firstWait
		}
		u.log.Printf("%s: %v; again in %s", u.name, err, wait)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	if u.http != nil {
		u.http.CloseIdleConnections()
	}
}

// serve is the life of one session. opened says that calls could be made in it.
func (u *upstream) serve(ctx context.Context) (opened bool, err error) {
	opening, cancel := context.WithTimeout(observe.WithServer(ctx, u.name), openLimit)
	defer cancel()
	session, err := u.client.Connect(opening, u.dial(), nil)
	if err != nil {
		return false, err
	}
	ended := make(chan struct{})
	go func() { _ = session.Wait(); close(ended) }()
	defer func() { _ = session.Close(); <-ended }()
	u.session.Store(session)
	if err := u.offer(opening, session); err != nil {
		return false, err
	}
	u.log.Printf("%s: connected, %d tools", u.name, len(u.offered))
	for {
		select {
		case <-ctx.Done():
			return true, ctx.Err()
		case <-ended:
			return true, errors.New("the session has ended")
		case <-u.stale:
			if err := u.refresh(ctx, session); err != nil {
				u.log.Printf("%s: listing the tools: %v", u.name, err)
			}
		}
	}
}

func (u *upstream) refresh(ctx context.Context, session *mcp.ClientSession) error {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	return u.offer(ctx, session)
}

// offer puts the upstream's tools among those of the gateway. They stay there while the
// upstream is away: a call then goes to the session that has ended, where the stack says
// that nothing was sent, or that an earlier try of the same call is in doubt.
func (u *upstream) offer(ctx context.Context, session *mcp.ClientSession) error {
	now := map[string]bool{}
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		shown := *tool
		shown.Name = u.name + "_" + tool.Name
		if err := add(u.agents, &shown, u.forward(tool.Name, shown.Name)); err != nil {
			u.log.Printf("%s: a tool is left out: %v", u.name, err)
			continue
		}
		now[shown.Name] = true
	}
	for name := range u.offered {
		if !now[name] {
			u.agents.RemoveTools(name)
		}
	}
	u.offered = now
	return nil
}

// add adds a tool. The SDK panics where it does not like the schema (go-sdk v1.8.0),
// which is an upstream's.
func add(s *mcp.Server, t *mcp.Tool, h mcp.ToolHandler) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	s.AddTool(t, h)
	return nil
}
