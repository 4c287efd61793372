package observe

import (
	"net/http"
	"strings"
)

// Why an answer that is JSON, or no JSON was expected, is not a usable one.
const (
	reasonStatus     = "the HTTP status says that the request failed"
	reasonRedirect   = "a redirect is not followed for this request"
	reasonSession    = "the server does not know the session"
	reasonNoResponse = "a success status without a response"
	reasonMedia      = "a media type that is neither JSON nor an event stream"
	reasonUTF8       = "not valid UTF-8"

	reasonNoObject    = "not a JSON object"
	reasonAmbiguous   = "a member is repeated or written in another case"
	reasonVersion     = `jsonrpc is not "2.0"`
	reasonMethod      = "a method member in a response"
	reasonNoID        = "no id"
	reasonID          = "the id is not the request's"
	reasonIDForm      = "the id is written differently from the request's"
	reasonUnknown     = "a member that JSON-RPC does not define"
	reasonBoth        = "both result and error"
	reasonNeither     = "neither result nor error"
	reasonErrorNull   = "error is null beside a result"
	reasonErrorObject = "error is not an object"
	reasonCode        = "the error code is not an integer"
	reasonCodeForm    = "the error code is not written as an integer"
	reasonMessage     = "the error message is not a string"
	reasonError       = "the server answered with an error"

	reasonResult        = "the result is not an object"
	reasonResultType    = "an unknown resultType"
	reasonRounds        = "input_required on a protocol version without rounds"
	reasonContent       = "content is missing or not an array"
	reasonContentMember = "a member of content is not an object"
	reasonIsError       = "isError is not a boolean"
	reasonInputRequests = "inputRequests is not an object"
	reasonInputRequest  = "a request for input that no client can fulfil"
	reasonStrayRequests = "inputRequests in a result that is not input_required"
	reasonRequestState  = "requestState is not a string"
)

// Classify says what one HTTP answer to one request amounts to, in the order
// status, media type, envelope, result. r may be nil. docs/reading.md lists what
// it decides and why.
//
// An answer of the media type text/event-stream does not come here: its events
// are judged one by one, by [ClassifyMessage].
//
// Classify reads the body once and holds no copy of it. It is safe for
// concurrent use.
func Classify(a Answer, r *Reading) Verdict {
	switch {
	case a.Status < 200 || a.Status > 299:
		return classifyStatus(&a, r)
	case a.Status == http.StatusAccepted, a.Status == http.StatusNoContent, isBlank(a.Body):
		return unusable(StreamIncomplete, reasonNoResponse)
	case !isJSON(a.Header):
		return unusable(UnexpectedContent, reasonMedia)
	}
	var f facts
	f.gather(a.Body, a.mayAsk())
	return f.judge(&a, r)
}

// classifyStatus judges by a status outside 2xx. The body can only add to it: the
// error that it carries, and whether that means that nothing was executed.
func classifyStatus(a *Answer, r *Reading) Verdict {
	v := Verdict{Outcome: HTTPError, Delivery: StatusDelivery(a.Status), Reason: reasonStatus}
	whole := v.readError(a, r)
	if whole && a.Status < 500 && CodeRefused(v.Error.Code) {
		v.Delivery = Refused
	}
	switch {
	case a.Status >= 300 && a.Status <= 399:
		v.Outcome, v.Reason = Redirected, reasonRedirect
	case a.Status == http.StatusNotFound && a.HadSession && !(whole && v.EchoedID && v.isUnknownTarget()):
		v.Outcome, v.Reason = SessionLost, reasonSession
	}
	return v
}

// readError reads the JSON-RPC error that the body of an HTTP error may carry. It
// reports whether that is a whole error response, to this request or, as servers
// that could not read the id write it, with id null or none.
func (v *Verdict) readError(a *Answer, r *Reading) (whole bool) {
	var f facts
	if f.gather(a.Body, false); f.fault != "" || f.notUTF8 && !r.accepts(DeviationInvalidUTF8) {
		return false
	}
	v.read(&f, a)
	id := f.envelope.found[memberID]
	// Anything else that looks like an error is the text of a gateway.
	defer func() {
		if !whole {
			v.Error = nil
		}
	}()
	return v.Error != nil && f.envelope.ambiguous == 0 && f.envelope.found[memberVersion].is("2.0") &&
		!f.envelope.has(memberMethod) && !f.envelope.has(memberResult) &&
		(v.EchoedID || id == nil || id.isNull())
}

// isUnknownTarget reports whether the error says that the method or the tool is
// unknown, which a server may put into a 404 of a session that is alive.
func (v *Verdict) isUnknownTarget() bool { return v.Error.Code == -32601 || v.Error.Code == -32602 }

// judge judges a message as the response to a request.
func (f *facts) judge(a *Answer, r *Reading) Verdict {
	var v Verdict
	if reason := f.unreadable(&v, r); reason != "" {
		return v.fail(MalformedJSON, reason)
	}
	v.read(f, a)
	if reason := f.misfit(&v, a, r); reason != "" {
		return v.fail(InvalidEnvelope, reason)
	}
	if v.Error != nil {
		v.Outcome, v.Delivery, v.Reason = JSONRPCError, Answered, reasonError
		if CodeRefused(v.Error.Code) {
			v.Delivery = Refused
		}
		return v
	}
	return f.judgeResult(v, a, r)
}

// unreadable says why the bytes are not a JSON document, or "".
func (f *facts) unreadable(v *Verdict, r *Reading) string {
	if f.fault != "" {
		return f.fault
	}
	if f.notUTF8 && !v.note(DeviationInvalidUTF8, r) {
		return reasonUTF8
	}
	return ""
}

// read takes from the facts what can be read without doubt.
func (v *Verdict) read(f *facts, a *Answer) {
	e := &f.envelope
	if !e.isAmbiguous(memberID) {
		v.EchoedID, _ = e.found[memberID].sameID(token(a.ID))
		v.ID = answerID(e.found[memberID], v.EchoedID, a)
	}
	if !e.isAmbiguous(memberError) && f.failure.ambiguous == 0 {
		v.Error = f.rpcError()
	}
}

// rpcError returns the error member, or nil if it is not one.
func (f *facts) rpcError() *RPCError {
	code, _, ok := f.failure.found[memberCode].integer()
	message := f.failure.found[memberMessage]
	if !ok || !message.isText() {
		return nil
	}
	return &RPCError{Code: code, Message: message.text(), Data: []byte(f.failure.found[memberData])}
}

// misfit says why the message is not a response to the request (JSON-RPC 2.0,
// section 5), or "".
func (f *facts) misfit(v *Verdict, a *Answer, r *Reading) string {
	e := &f.envelope
	id := e.found[memberID]
	_, sameForm := id.sameID(token(a.ID))
	switch {
	case !f.isObject:
		return reasonNoObject
	case e.ambiguous != 0:
		return reasonAmbiguous
	case !e.found[memberVersion].is("2.0"):
		return reasonVersion
	case e.has(memberMethod):
		return reasonMethod
	case id == nil:
		return reasonNoID
	case !v.EchoedID:
		return reasonID
	case !sameForm && !v.note(DeviationIDForm, r):
		return reasonIDForm
	case e.unknown && !v.note(DeviationUnknownMember, r):
		return reasonUnknown
	}
	return f.contradiction(v, r)
}

// contradiction says why the message does not carry exactly one of result and
// error, or "".
func (f *facts) contradiction(v *Verdict, r *Reading) string {
	hasResult, failure := f.envelope.has(memberResult), f.envelope.found[memberError]
	switch {
	case hasResult && failure.isNull():
		if !v.note(DeviationErrorNull, r) {
			return reasonErrorNull
		}
		return ""
	case hasResult && failure != nil:
		return reasonBoth
	case hasResult:
		return ""
	case failure == nil || failure.isNull():
		return reasonNeither
	}
	return f.badError(v, r)
}

// badError says why the error member is not an error object, or "".
func (f *facts) badError(v *Verdict, r *Reading) string {
	_, plain, ok := f.failure.found[memberCode].integer()
	switch {
	case !f.envelope.found[memberError].isObject():
		return reasonErrorObject
	case f.failure.ambiguous != 0:
		return reasonAmbiguous
	case !ok:
		return reasonCode
	case !f.failure.found[memberMessage].isText():
		return reasonMessage
	case !plain && !v.note(DeviationCodeForm, r):
		return reasonCodeForm
	}
	return ""
}

// judgeResult judges the result of a response that is otherwise right.
func (f *facts) judgeResult(v Verdict, a *Answer, r *Reading) Verdict {
	v.Delivery, v.Result = Answered, f.envelope.found[memberResult]
	switch {
	case !token(v.Result).isObject():
		return v.fail(InvalidToolResult, reasonResult)
	case f.looseRequest:
		return v.fail(InvalidToolResult, reasonInputRequest)
	case !a.judgesTool():
		v.Outcome = ToolSuccess
		return v
	case f.result.ambiguous != 0:
		return v.fail(InvalidToolResult, reasonAmbiguous)
	}
	v.ResultType = f.resultType()
	if isError, ok := f.result.found[memberIsError].boolean(); ok {
		v.IsError = new(isError)
	}
	return f.judgeType(v, a, r)
}

// The values of resultType that MCP defines.
const (
	typeComplete      = "complete"
	typeInputRequired = "input_required"
)

// resultType returns the value of resultType, "" if there is none. The usual one
// costs no allocation.
func (f *facts) resultType() string {
	raw := f.result.found[memberResultType]
	if raw.is(typeComplete) {
		return typeComplete
	}
	return raw.text()
}

// judgeType judges by resultType, which MCP 2026-07-28 introduced: absent means
// complete, and what is not known is invalid (basic protocol, "ResultType").
func (f *facts) judgeType(v Verdict, a *Answer, r *Reading) Verdict {
	raw, requests := f.result.found[memberResultType], f.result.found[memberInputRequests]
	switch {
	case v.ResultType != typeInputRequired && requests != nil && !requests.isNull():
		// The SDK would ask, and send the finished call again (go-sdk v1.8.0).
		return v.fail(InvalidToolResult, reasonStrayRequests)
	case raw == nil || v.ResultType == typeComplete:
		return f.judgeComplete(v)
	case v.ResultType == typeInputRequired && !a.hasRounds():
		return v.fail(InvalidToolResult, reasonRounds)
	case v.ResultType == typeInputRequired:
		return f.judgeRound(v)
	case raw.isText() && r.declares(v.ResultType):
		v.Outcome = ExtensionResult
		return v
	case a.hasRounds() || !v.note(DeviationResultType, r):
		return v.fail(InvalidToolResult, reasonResultType)
	}
	return f.judgeComplete(v)
}

func (f *facts) judgeRound(v Verdict) Verdict {
	requests, state := f.result.found[memberInputRequests], f.result.found[memberRequestState]
	switch {
	case requests != nil && !requests.isObject() && !requests.isNull():
		return v.fail(InvalidToolResult, reasonInputRequests)
	case state != nil && !state.isText():
		return v.fail(InvalidToolResult, reasonRequestState)
	}
	v.Outcome, v.InputRequests = InputRequired, f.inputRequests
	return v
}

func (f *facts) judgeComplete(v Verdict) Verdict {
	switch {
	case !f.result.found[memberContent].isArray():
		return v.fail(InvalidToolResult, reasonContent)
	case f.looseContent:
		return v.fail(InvalidToolResult, reasonContentMember)
	case v.IsError == nil && f.result.found[memberIsError] != nil:
		return v.fail(InvalidToolResult, reasonIsError)
	}
	v.Outcome = ToolSuccess
	if v.IsError != nil && *v.IsError {
		v.Outcome = ToolError
	}
	return v
}

// note notes a deviation and reports whether it is accepted.
func (v *Verdict) note(d Deviation, r *Reading) bool {
	v.Deviations = append(v.Deviations, d)
	return r.accepts(d)
}

// fail ends the verdict. Whether the request was executed is not known: what
// came is not an answer that could be trusted to say so.
func (v Verdict) fail(o Outcome, reason string) Verdict {
	v.Outcome, v.Delivery, v.Reason = o, Unknown, reason
	return v
}

func unusable(o Outcome, reason string) Verdict { return Verdict{}.fail(o, reason) }

// isBlank reports whether a body holds nothing but white space.
func isBlank(body []byte) bool {
	s := scanner{data: body}
	return s.space(0) == len(body)
}

// isJSON reports whether the media type is application/json, or not given.
func isJSON(h http.Header) bool {
	value := h.Get("Content-Type")
	media, _, _ := strings.Cut(value, ";")
	return value == "" || strings.EqualFold(strings.TrimSpace(media), "application/json")
}

// maxID bounds the id of an answer that a verdict keeps.
const maxID = 64

// answerID is the id that an answer carries; without a copy where it is the
// request's.
func answerID(id token, echoed bool, a *Answer) string {
	switch {
	case echoed && string(id) == a.ID:
		return a.ID
	case len(id) > maxID:
		return ""
	}
	return string(id)
}
