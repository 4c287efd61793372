package observe

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An Error reports a call that ended without a usable answer. It is the only
// error type of this library; find it with errors.As, or with [github.com/surecall/surecall/middleware.ErrorFrom] where
// only the RoundTripper is in use.
//
// Its text and its Unwrap are deliberate. Agent frameworks run a call again
// when errors.Is finds io.EOF, a closed connection or a missing session, which
// doubles an effect that the server had already caused. So the cause is kept
// out of the chain and is found by [Error.Cause] alone.
type Error struct {
	Outcome  Outcome
	Delivery Delivery
	// Reason says in a few words what was seen: our words, never the server's.
	Reason string

	Tool   string
	Server string
	// Safety is the safety class of the tool.
	Safety string

	// Status is the HTTP status, or 0.
	Status int
	// RPC is the JSON-RPC error that the server sent, also in an HTTP error.
	RPC *RPCError
	// RetryAfter is the wait that the server or a local limit asked for; 0 where
	// none is known.
	RetryAfter time.Duration
	// Location is the origin that a redirect named.
	Location string
	// Attempts made, oldest first.
	Attempts []Attempt
	// Healed says that the lost session has been renewed: the next call will find it
	// alive.
	Healed bool
	// RepeatSafe says that sending the call again cannot double an effect: it was
	// not run, or a repeat of this tool is harmless.
	RepeatSafe bool
	// Redactor knows what the call carried, so that no text of this error quotes it;
	// nil redacts by shape alone.
	Redactor *Redactor

	cause  error
	caller error
}

// NewError returns e with its raw cause and the caller's own context error, each
// of which may be nil.
func NewError(e Error, cause, caller error) *Error {
	e.cause, e.caller = cause, caller
	return &e
}

// Layer is the layer of the error's outcome.
func (e *Error) Layer() Layer { return e.Outcome.Layer() }

// Cause returns the raw error beneath, or nil. It is not part of the chain that
// errors.Is and errors.As walk.
func (e *Error) Cause() error { return e.cause }

// Judgement is what the error says of an attempt, for whoever stands above and has
// not seen the wire.
func (e *Error) Judgement() Judgement {
	j := Judgement{Outcome: e.Outcome, Delivery: e.Delivery, Reason: e.Reason, RPC: e.RPC}
	if e.Status != 0 {
		j.Post = &Post{Status: e.Status, Location: e.Location, Healed: e.Healed, Verdict: Verdict{Outcome: e.Outcome, Delivery: e.Delivery, Error: e.RPC}}
	}
	return j
}

// Error says the tool, the outcome, what was seen and whether a repeat is safe.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("surecall: ")
	if e.Tool != "" {
		fmt.Fprintf(&b, "tool %q: ", e.Tool)
	}
	b.WriteString(string(e.Outcome))
	if e.Status != 0 && (e.Status < 200 || e.Status > 299) {
		fmt.Fprintf(&b, " %d", e.Status)
	}
	if e.RPC != nil {
		fmt.Fprintf(&b, " %d %q", e.RPC.Code, e.Redactor.Text(e.RPC.Message, maxQuoted))
	}
	if e.Reason != "" {
		b.WriteString(": " + e.Reason)
	}
	if e.Location != "" {
		b.WriteString(" to " + e.Location)
	}
	if e.RetryAfter > 0 {
		fmt.Fprintf(&b, "; wait %s", e.RetryAfter.Round(time.Millisecond))
	}
	b.WriteString("; " + e.advice())
	return b.String()
}

func (e *Error) advice() string {
	switch {
	case e.Outcome == Blocked:
		return "nothing was sent"
	case e.Delivery == NotSent:
		return "not sent, a repeat is safe"
	case e.RepeatSafe:
		return "a repeat is safe"
	case e.Delivery == Refused:
		return "the server refused it, check before repeating"
	case e.Delivery == Answered:
		return "the server answered, a repeat may double an effect"
	}
	return "it may have taken effect, do not repeat without checking"
}

// Unwrap shows the caller's own context error and the server's own JSON-RPC
// error. Where a repeat is safe it also shows what frameworks look for before
// they reconnect; never for an answer, whose code the SDK may take for a closed
// connection (-32003 and -32004, go-sdk v1.8.0).
func (e *Error) Unwrap() []error {
	var errs []error
	if e.caller != nil {
		errs = append(errs, e.caller)
	}
	if e.RPC != nil {
		errs = append(errs, &jsonrpc.Error{Code: e.RPC.Code, Message: e.RPC.Message, Data: e.RPC.Data})
	}
	if e.RepeatSafe && !e.Outcome.Answered() {
		errs = append(errs, e.signals()...)
	}
	return errs
}

// signals are those errors of the cause that tell a framework to reconnect. The
// SDK's "rejected by transport" marker is never among them: it says that a
// request did not arrive where nobody knows that.
func (e *Error) signals() []error {
	var errs []error
	for _, s := range []error{
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed,
		mcp.ErrConnectionClosed, mcp.ErrSessionMissing,
	} {
		if errors.Is(e.cause, s) {
			errs = append(errs, s)
		}
	}
	if e.Outcome == SessionLost && !errors.Is(e.cause, mcp.ErrSessionMissing) {
		errs = append(errs, mcp.ErrSessionMissing)
	}
	var op *net.OpError
	if errors.As(e.cause, &op) {
		errs = append(errs, op)
	}
	return errs
}
