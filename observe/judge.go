package observe

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Return is what the SDK handed back for an attempt.
type Return struct {
	// Err is the error, or nil.
	Err error
	// IsError and NeedsInput describe the result where Err is nil.
	IsError, NeedsInput bool
	// CtxErr is the error of the attempt's context, or nil.
	CtxErr error
	// Wire says that our RoundTripper stands below this session, so that its
	// silence means that nothing was sent.
	Wire bool
	// Unseen says that a request of the attempt may have gone by unread.
	Unseen bool
	// Decoded says that the answer seen on the wire decodes into a result, asked
	// only where Err is not nil.
	Decoded bool
}

// A Judgement is what an attempt came to.
type Judgement struct {
	Outcome  Outcome
	Delivery Delivery
	Reason   string
	// Post is the POST that decided, or nil where none did.
	Post *Post
	// RPC is the server's JSON-RPC error, if it sent one.
	RPC *RPCError
}

// Judge says what an attempt came to, from what was seen on the wire first and
// from what the SDK returned second: the SDK reports a dead context where the
// whole answer had been read, and marks errors of the transport with a JSON-RPC
// code that means nothing (go-sdk v1.8.0).
func Judge(posts []Post, r Return) Judgement {
	if len(posts) == 0 {
		return judgeReturn(r)
	}
	last := &posts[len(posts)-1]
	j := judgeLast(last, r)
	j.Post = last
	if j.RPC == nil {
		j.RPC = last.Verdict.Error
	}
	if j.Delivery != Answered {
		j.Delivery = Gravest(j.Delivery, postsDelivery(posts[:len(posts)-1]))
		if r.Unseen {
			j.Delivery = Unknown
		}
	}
	return j
}

// judgeLast judges by the last POST, which decides the outcome.
func judgeLast(p *Post, r Return) Judgement {
	v := p.Verdict
	switch {
	case p.open():
		return judgeOpen(p, r)
	case v.Outcome == InputRequired:
		return judgeRound(v, r)
	case v.Outcome.Usable() && r.Err != nil && !r.Decoded:
		return Judgement{Outcome: InvalidToolResult, Delivery: Unknown, Reason: "the result does not decode into a tool result"}
	}
	return Judgement{Outcome: v.Outcome, Delivery: v.Delivery, Reason: v.Reason}
}

// judgeOpen judges a POST that has not come to its end.
func judgeOpen(p *Post, r Return) Judgement {
	j := Judgement{Delivery: Unknown}
	switch {
	case r.CtxErr != nil:
		j.Outcome, j.Reason = ctxOutcome(r.CtxErr)
	case r.Err == nil:
		j.Outcome, j.Reason = StreamIncomplete, "a result without a response on the wire"
	default:
		j.Outcome, j.Reason = NetworkError, "the session ended while the call was under way"
	}
	return j
}

// judgeRound judges an attempt whose last answer asked for input: the SDK's
// multi-round-trip loop runs inside the attempt and ended after that answer.
func judgeRound(v Verdict, r Return) Judgement {
	switch {
	case r.Err != nil && r.CtxErr != nil:
		o, reason := ctxOutcome(r.CtxErr)
		return Judgement{Outcome: o, Delivery: Answered, Reason: reason + " while input was awaited"}
	case v.InputRequests == 0:
		return Judgement{Outcome: InputRequired, Delivery: Answered, Reason: reasonPutOff}
	case r.Err == nil:
		return Judgement{Outcome: InputRequired, Delivery: Answered}
	}
	return Judgement{Outcome: InvalidToolResult, Delivery: Unknown, Reason: reasonEndlessRounds}
}

// judgeReturn judges without a wire to look at: stdio and in-memory transports,
// or a call that never reached our RoundTripper.
func judgeReturn(r Return) Judgement {
	if r.Err == nil {
		return Judgement{Outcome: resultOutcome(r), Delivery: Answered}
	}
	unsent := Unknown
	if r.Wire {
		unsent = NotSent
	}
	if r.CtxErr != nil {
		o, reason := ctxOutcome(r.CtxErr)
		return Judgement{Outcome: o, Delivery: unsent, Reason: reason}
	}
	if r.Wire && errors.Is(r.Err, mcp.ErrConnectionClosed) {
		return Judgement{Outcome: SessionLost, Delivery: NotSent, Reason: "the session is closed"}
	}
	if j, ok := judgeLoop(r.Err); ok {
		return j
	}
	if e := serverError(r.Err); e != nil && !r.Wire {
		j := Judgement{Outcome: JSONRPCError, Delivery: Answered, RPC: e, Reason: "the server answered with an error"}
		if CodeRefused(e.Code) {
			j.Delivery = Refused
		}
		return j
	}
	if isDecodeError(r.Err) && !r.Wire {
		return Judgement{Outcome: InvalidToolResult, Delivery: Unknown, Reason: "the result does not decode into a tool result"}
	}
	return Judgement{Outcome: NetworkError, Delivery: unsent, Reason: brokenReason(r)}
}

// judgeLoop recognises what the SDK's loop of rounds gives up with (go-sdk v1.8.0),
// which has no type. What a peer or the transport says comes behind other words.
func judgeLoop(err error) (Judgement, bool) {
	text := err.Error()
	switch {
	case strings.HasPrefix(text, "multi-round-trip: exceeded maximum load-shedding retries"):
		return Judgement{Outcome: InputRequired, Delivery: Answered, Reason: reasonPutOff}, true
	case strings.HasPrefix(text, "multi-round-trip: "), strings.HasPrefix(text, "multi round-trip: "):
		return Judgement{Outcome: InvalidToolResult, Delivery: Unknown, Reason: reasonEndlessRounds}, true
	}
	return Judgement{}, false
}

const (
	reasonPutOff        = "the server kept putting the call off"
	reasonEndlessRounds = "the rounds did not end, or an input request could not be fulfilled"
)

// brokenReason says what is known of a call that failed without our seeing it.
func brokenReason(r Return) string {
	var marker *jsonrpc.Error
	if !r.Wire && errors.As(r.Err, &marker) {
		return "the transport below failed, and nothing of ours stands there to say how (see Stack.HTTPClient)"
	}
	return "the connection failed"
}

func resultOutcome(r Return) Outcome {
	switch {
	case r.NeedsInput:
		return InputRequired
	case r.IsError:
		return ToolError
	}
	return ToolSuccess
}

func ctxOutcome(err error) (Outcome, string) {
	if errors.Is(err, context.DeadlineExceeded) {
		return Timeout, "the deadline passed"
	}
	return Canceled, "the caller gave up"
}

// postsDelivery is the gravest delivery of earlier POSTs. A round that was
// answered does not count: the next round goes on from it.
func postsDelivery(posts []Post) Delivery {
	var d Delivery
	for i := range posts {
		switch p := &posts[i]; {
		case p.open():
			d = Gravest(d, Unknown)
		case !p.answered():
			d = Gravest(d, p.Verdict.Delivery)
		}
	}
	return d
}

// serverError returns the JSON-RPC error that the peer sent, if the SDK passed
// one on. The SDK wraps it exactly once ("calling ...: %w"); its own "rejected by
// transport" marker, which is of the same type, sits deeper.
func serverError(err error) *RPCError {
	e, ok := errors.Unwrap(err).(*jsonrpc.Error)
	if !ok || isLocalError(e) {
		return nil
	}
	return &RPCError{Code: e.Code, Message: e.Message, Data: e.Data}
}

// isLocalError recognises what the SDK itself says of a line that it cannot read,
// which ends the connection and every call in flight (go-sdk v1.8.0): by type it is
// the same as an error of the peer.
func isLocalError(e *jsonrpc.Error) bool {
	return len(e.Data) == 0 && (e.Code == -32600 && e.Message == "invalid request" || e.Code == -32700 && e.Message == "parse error")
}

func isDecodeError(err error) bool {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &typ)
}
