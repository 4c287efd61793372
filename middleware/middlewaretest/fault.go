package middlewaretest

import (
	"net/http"
	"time"
)

// When says whether the tool runs when a fault strikes its call.
type When int

const (
	// Never: the tool does not run.
	Never When = iota
	// Before: the tool runs, and then the fault strikes.
	Before
	// After: the fault strikes, and then the tool runs: a gateway that gave up
	// while the server behind it went on. The effect may show a moment after the
	// client has its answer.
	After
)

func (w When) String() string {
	switch w {
	case Before:
		return "before"
	case After:
		return "after"
	}
	return "never"
}

// Ending says what follows the last byte of a fault's answer.
type Ending int

const (
	// EndComplete ends the answer as HTTP demands.
	EndComplete Ending = iota
	// EndReset resets the TCP connection (RST). On HTTP/2 it resets the stream
	// with INTERNAL_ERROR.
	EndReset
	// EndClose closes the TCP connection (FIN). On HTTP/2 it is as EndReset.
	EndClose
	// EndSilent sends nothing more until the client gives up or the server closes.
	EndSilent
	// EndProtocolError resets the HTTP/2 stream with PROTOCOL_ERROR, after which
	// net/http sends a POST again if it can. On HTTP/1.1 it is as EndReset.
	EndProtocolError
	// EndRefusedStream resets the HTTP/2 stream with REFUSED_STREAM, which says
	// that it was not processed. On HTTP/1.1 it is as EndReset.
	EndRefusedStream
	// EndGoAway ends the HTTP/2 connection with a GOAWAY frame that says that the
	// stream was not processed. It would say so of later streams too: where there
	// are any, it is as EndRefusedStream. On HTTP/1.1 it is as EndClose.
	EndGoAway
)

// Resumption says what a GET with Last-Event-ID gets after a fault has cut a
// stream with event ids.
type Resumption int

const (
	ResumeDelivers   Resumption = iota // what was missing
	ResumeNotAllowed                   // 405
	ResumeNotFound                     // 404
	ResumeNothing                      // 200 and an empty stream
	ResumeSilent                       // 200 and silence
)

// Conditions under which a fault can be put on the wire. They are combined by
// bitwise or.
type Conditions uint

const (
	// NeedsHTTP1: the fault is one of HTTP/1.1.
	NeedsHTTP1 Conditions = 1 << iota
	// NeedsHTTP2: the fault is one of HTTP/2.
	NeedsHTTP2
	// NeedsSession: there is nothing to break without sessions.
	NeedsSession
	// NeedsStateless: the fault is one of 2026-07-28.
	NeedsStateless
	// NeedsLegacy: the fault is one of 2025-11-25.
	NeedsLegacy
	// NeedsDeadline: the server never ends the call by itself; the client has to.
	NeedsDeadline
	// NeedsLimit: the expectation holds for a client that limits a result to
	// [CatalogueResultLimit].
	NeedsLimit
)

// An Expectation is what a client that tells the truth says about one attempt, in
// the words of package observe.
type Expectation struct {
	Outcome, Delivery string
}

// A Fault is one way to answer a request wrongly. The zero Fault is no fault: the
// honest answer. A Fault without Status and Ending is the honest answer too, but
// late, after a 103, or with other headers; the tool then runs, whatever Execute
// says. On a server that [Fault.Applies] says no for, a fault does what it can.
//
// Body and the values of Header are templates, in which these words are replaced:
//
//	%id%        the request's JSON-RPC id
//	%nextid%    a number that is not the id
//	%halfid%    the id and a half
//	%textid%    the id as a string
//	%result%    the result of the tool; where it has not run, one that is made up
//	%response%  the JSON-RPC response with that result
//	%question%  an input_required result with a question to the user
//	%state%     the state of the next round of the call
//	%token%     the progress token, or null
//	%stream%    the id of a stream that can be resumed
//	%fill%      as many letters as Size says
//	%here%      the URL of the request
//	%elsewhere% the same URL in another origin
type Fault struct {
	// Name identifies the fault in the ledger and in the catalogue.
	Name string
	// Execute says whether and when the tool runs.
	Execute When
	// Round is the round of a multi-round-trip call (2026-07-28) that the fault
	// strikes; in the rounds before, the user is asked. 0 and 1 mean the first.
	Round int
	// EveryRound makes the fault strike in all later rounds too.
	EveryRound bool

	// Delay passes before the first byte of the answer.
	Delay time.Duration
	// Status is the HTTP status; 0 sends no answer at all before the Ending.
	Status int
	// Header is added to the answer, in place of what would be sent by default; a
	// nil value removes the header.
	Header http.Header
	// RetryAfter, if not 0, is sent as Retry-After, rounded up to seconds, as a
	// date if RetryDate is set.
	RetryAfter time.Duration
	RetryDate  bool
	// Body is the template of the answer's body. Its media type is
	// application/json unless Header says otherwise.
	Body string
	// Size is the number of bytes of %fill%.
	Size int
	// Missing is the number of bytes that Content-Length announces and that are
	// not sent.
	Missing int
	// Whole announces the length of the body as it is, although an Ending follows:
	// the answer is complete, and the connection breaks after it.
	Whole bool
	// Chunked sends the body without Content-Length; event streams always are.
	Chunked bool
	// EarlyHints sends a 103 before the answer.
	EarlyHints bool
	// Pace, if not 0, sends the body in pieces of 16 bytes with this pause between
	// them.
	Pace time.Duration
	// Repeat, if not 0, sends the body again after each such time, until the client
	// gives up; there is no Ending then.
	Repeat time.Duration
	// Ending says what follows the last byte.
	Ending Ending
	// Resume says how resuming the stream %stream% ends; what is delivered is the
	// JSON-RPC response.
	Resume Resumption
	// ForgetSessions makes the server forget all its sessions when the fault
	// strikes.
	ForgetSessions bool
	// ChangeSession sends another Mcp-Session-Id than the session's.
	ChangeSession bool

	// encode changes the body after the templates were filled in.
	encode func([]byte) []byte
	// sticky says that the fault strikes again when its round is sent again.
	sticky bool

	// Needs says where the fault can strike; see [Fault.Applies].
	Needs Conditions
	// Expectation holds on both protocol versions and with or without sessions,
	// unless Legacy (2025-11-25) or InSession (a request that carried a session
	// id) says otherwise. In the catalogue it is always set.
	Expectation
	Legacy    *Expectation
	InSession *Expectation
	// Rests says why the expectation is what it is, where that is not plain.
	Rests string
}

// Applies reports whether the fault can be put on the wire by a server with
// these options; nil is the zero Options.
func (f Fault) Applies(opts *Options) bool {
	o := opts.normalized()
	for _, c := range []struct {
		need Conditions
		met  bool
	}{
		{NeedsHTTP1, !o.HTTP2},
		{NeedsHTTP2, o.HTTP2},
		{NeedsSession, o.Sessions},
		{NeedsStateless, o.stateless()},
		{NeedsLegacy, !o.stateless()},
	} {
		if f.Needs&c.need != 0 && !c.met {
			return false
		}
	}
	return true
}

// Expected returns what a client should say about one attempt at a server with
// these options; nil is the zero Options.
func (f Fault) Expected(opts *Options) Expectation {
	o := opts.normalized()
	switch {
	case o.Sessions && f.InSession != nil:
		return *f.InSession
	case !o.stateless() && f.Legacy != nil:
		return *f.Legacy
	}
	return f.Expectation
}

// Executed returns a copy of the fault, under a name of its own, before which
// the tool runs.
func (f Fault) Executed() Fault {
	f.Name, f.Execute = f.Name+"-executed", Before
	return f
}

// ExecutedLater returns a copy of the fault, under a name of its own, after which
// the tool runs.
func (f Fault) ExecutedLater() Fault {
	f.Name, f.Execute = f.Name+"-executed-later", After
	return f
}

// AsEvent returns a copy of a fault whose Body is one JSON document, under a name
// of its own, that sends it as an event of an event stream.
func (f Fault) AsEvent() Fault {
	f.Name, f.Body = "event-"+f.Name, "data: "+f.Body+"\n\n"
	return f.withType("text/event-stream")
}

// Runs reports whether the tool runs in the exchange that the fault strikes.
func (f Fault) Runs() bool { return f.Execute != Never || f.honest() }

// Delayed returns a copy of the fault that strikes after d.
func (f Fault) Delayed(d time.Duration) Fault {
	f.Delay = d
	return f
}

// honest reports whether the answer is the honest one, late or changed.
func (f *Fault) honest() bool {
	return f.Status == 0 && f.Ending == EndComplete
}

// isZero reports whether f does nothing.
func (f *Fault) isZero() bool {
	return f.Name == "" && f.honest() && f.Delay == 0 && f.Header == nil && f.RetryAfter == 0 &&
		!f.ForgetSessions && !f.ChangeSession && !f.EarlyHints
}
