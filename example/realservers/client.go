package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/observe"
)

// limit bounds a call and the handshake.
const limit = time.Minute

// An answer is what the host got for one call.
type answer struct {
	value   any // the result as JSON, normalised; nil where there is an error
	isError bool
	err     error
	record  *observe.Record // nil for the bare client
}

// A visit is everything that one client got from its process of a server.
type visit struct {
	version string // of the protocol
	tools   []string
	list    any // the tools as JSON, normalised
	answers []answer
}

// visit makes all calls with one client, bare or wrapped.
func (s *server) visit(ctx context.Context, wrapped bool) (*visit, error) {
	p, err := s.start(ctx)
	if err != nil {
		return nil, err
	}
	defer p.close()
	v := &visitor{process: p, visit: &visit{}}
	session, err := v.connect(ctx, wrapped)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	v.visit.version = session.InitializeResult().ProtocolVersion
	if err := v.list(ctx, session); err != nil {
		return nil, err
	}
	for _, c := range s.calls {
		v.visit.answers = append(v.visit.answers, v.call(ctx, session, c))
	}
	return v.visit, nil
}

// A visitor is a client on its way through the calls.
type visitor struct {
	*process
	visit  *visit
	record *observe.Record // of the latest call
}

func (v *visitor) normaliser() *normaliser { return normaliserFor(v.hide) }

func (v *visitor) connect(ctx context.Context, wrapped bool) (*mcp.ClientSession, error) {
	sdk := newHost(v.dir)
	var stack *middleware.Stack
	if wrapped {
		stack = middleware.New(&middleware.Options{OnRecord: func(_ context.Context, r *observe.Record) { v.record = r }})
		sdk.AddSendingMiddleware(stack.Middleware()...)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return sdk.Connect(ctx, v.process.connect(stack), nil)
}

func (v *visitor) list(ctx context.Context, session *mcp.ClientSession) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var tools []*mcp.Tool
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return fmt.Errorf("listing the tools: %w", err)
		}
		tools = append(tools, tool)
		v.visit.tools = append(v.visit.tools, tool.Name)
	}
	var err error
	v.visit.list, err = v.normaliser().value(tools)
	return err
}

func (v *visitor) call(ctx context.Context, session *mcp.ClientSession, c call) answer {
	deadline := limit
	if c.deadline > 0 {
		deadline = c.deadline
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	if c.kill {
		defer time.AfterFunc(killAfter, v.kill).Stop()
	}
	args := json.RawMessage(strings.ReplaceAll(c.args, "{dir}", v.dir))
	if !json.Valid(args) {
		return answer{err: fmt.Errorf("the arguments are not JSON: %s", args)}
	}
	v.record = nil
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: c.tool, Arguments: args})
	a := answer{err: err, record: v.record}
	if err == nil {
		a.isError = res.IsError
		a.value, a.err = v.normaliser().value(res)
	}
	return a
}

// named reports whether an error is the library's, with an outcome.
func named(err error) bool {
	var e *observe.Error
	return errors.As(err, &e) && e.Outcome != ""
}
