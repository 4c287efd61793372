package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/internal/plaintext"
)

// What -elicit can be.
const (
	elicitAccept  = "accept"
	elicitDecline = "decline"
	elicitAsk     = "ask"
)

// What an elicitation is answered with.
const (
	actionAccept  = "accept"
	actionDecline = "decline"
	actionCancel  = "cancel"
)

// An answerer answers the input requests of servers, one at a time, and says on
// stderr what was asked and what it answered. It opens no address.
type answerer struct {
	how      string
	terminal *terminal // nil where nobody can be asked
	stderr   io.Writer
	turn     chan struct{}
}

func newAnswerer(how string, stdin io.Reader, stderr io.Writer) *answerer {
	a := &answerer{how: how, stderr: stderr, turn: make(chan struct{}, 1)}
	if how == elicitAsk && isTerminal(stdin) {
		a.terminal = newTerminal(stdin, stderr)
	}
	return a
}

// close lets go of the terminal.
func (a *answerer) close() {
	if a.terminal != nil {
		a.terminal.close()
	}
}

// answer is the client's elicitation handler.
func (a *answerer) answer(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	res, why := a.decide(ctx, req.Params)
	if err := ctx.Err(); err != nil {
		fmt.Fprintln(a.stderr, "doctor: the call ended before its question was answered")
		return nil, err
	}
	fmt.Fprintf(a.stderr, "doctor: the server asks %s%s: %s\n", quoted(req.Params.Message, maxWords), shownURL(req.Params), why)
	return res, nil
}

// maxURL bounds the address that is shown, in bytes.
const maxURL = 2000

// shownURL is the address that a person is sent to, for that person to judge.
func shownURL(p *mcp.ElicitParams) string {
	if p.Mode != "url" {
		return ""
	}
	if len(p.URL) > maxURL {
		return " at an address too long to be shown"
	}
	return " at " + plaintext.OneLine(p.URL)
}

// decide returns the answer, and in words what it is and why.
func (a *answerer) decide(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, string) {
	switch {
	case a.how == elicitDecline:
		return &mcp.ElicitResult{Action: actionDecline}, "declined"
	case a.how == elicitAsk && a.terminal == nil:
		return &mcp.ElicitResult{Action: actionDecline}, "declined, as there is no terminal to ask on"
	}
	var f *form
	if p.Mode != "url" {
		var err error
		if f, err = readForm(p.RequestedSchema); err != nil {
			return &mcp.ElicitResult{Action: actionDecline}, "declined, as its form cannot be read"
		}
	}
	if a.how == elicitAsk {
		res := a.terminal.ask(ctx, p, f)
		return res, "answered " + res.Action
	}
	if f == nil {
		return &mcp.ElicitResult{Action: actionAccept}, "accepted, without opening the address"
	}
	content := f.filled()
	text, _ := json.Marshal(content)
	return &mcp.ElicitResult{Action: actionAccept, Content: content}, "accepted with " + plain(string(text), maxWords)
}
