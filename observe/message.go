package observe

// MessageKind says what a JSON-RPC message is. The zero value is no kind.
type MessageKind int

const (
	// KindInvalid is anything that is not one of the others.
	KindInvalid MessageKind = iota + 1
	KindResponse
	KindRequest
	KindNotification
)

// String names the kind.
func (k MessageKind) String() string {
	switch k {
	case KindInvalid:
		return "invalid"
	case KindResponse:
		return "response"
	case KindRequest:
		return "request"
	case KindNotification:
		return "notification"
	}
	return "none"
}

// Why a message with a method is not passed on.
const (
	reasonMethodType    = "method is not a string"
	reasonMethodAnswer  = "a method beside a result or an error"
	reasonRequestID     = "the id of a request is neither a string nor an integer"
	reasonServerRequest = "a request on a protocol version without server requests"
)

// ClassifyMessage judges one message on a stream that answers a request, such as
// the data of one SSE event. Of a, only what tells of the request counts: ID,
// Method and ProtocolVersion. r may be nil.
//
// A notification or a request is to be passed on: its verdict has no outcome, and
// at most a deviation. Anything else ends the answer, and the verdict says how: a
// response to the request is judged as [Classify] judges it, and what is no
// message or a response to something else is a failure of kind [KindInvalid].
func ClassifyMessage(data []byte, a Answer, r *Reading) (MessageKind, Verdict) {
	var f facts
	f.gather(data, a.mayAsk())
	if f.isObject && f.fault == "" && f.envelope.has(memberMethod) {
		return f.judgeCall(&a, r)
	}
	v := f.judge(&a, r)
	if v.EchoedID {
		return KindResponse, v
	}
	return KindInvalid, v
}

// judgeCall judges a message that has a method.
func (f *facts) judgeCall(a *Answer, r *Reading) (MessageKind, Verdict) {
	var v Verdict
	if reason := f.unreadable(&v, r); reason != "" {
		return KindInvalid, v.fail(MalformedJSON, reason)
	}
	if reason := f.badCall(&v, a, r); reason != "" {
		return KindInvalid, v.fail(InvalidEnvelope, reason)
	}
	if f.envelope.found[memberID] == nil {
		return KindNotification, v
	}
	return KindRequest, v
}

// badCall says why a message is neither a request nor a notification (JSON-RPC
// 2.0, section 4; MCP asks for ids that are strings or integers), or "".
func (f *facts) badCall(v *Verdict, a *Answer, r *Reading) string {
	e := &f.envelope
	id := e.found[memberID]
	_, _, isInteger := id.integer()
	switch {
	case e.ambiguous != 0:
		return reasonAmbiguous
	case !e.found[memberVersion].is("2.0"):
		return reasonVersion
	case !e.found[memberMethod].isText():
		return reasonMethodType
	case e.has(memberResult) || e.has(memberError):
		return reasonMethodAnswer
	case id == nil:
		return ""
	case !id.isText() && !isInteger:
		return reasonRequestID
	case a.hasRounds() && !v.note(DeviationServerRequest, r):
		return reasonServerRequest
	case !isBearable(f.data):
		return reasonInputRequest
	}
	return ""
}

// Envelope reads what a message is, its id (as JSON) and its method, for messages
// of this side, which need no judging. It stops as soon as these are known: the
// SDK writes jsonrpc, id and method before params (go-sdk v1.8.0), so the first
// bytes of a request are enough. A notification is known as such only at its end.
//
// ok is false if data is not such a message, or only a beginning that does not
// tell.
func Envelope(data []byte) (kind MessageKind, id, method string, ok bool) {
	e := envelopeReader{scanner: scanner{data: data}}
	i := e.space(0)
	if e.at(i) != '{' {
		return KindInvalid, "", "", false
	}
	whole := e.object(i, 0, e.member) >= 0
	switch {
	case !e.version.is("2.0"):
		return KindInvalid, "", "", false
	case e.id != nil && e.method.isText():
		kind = KindRequest
	case e.id != nil && e.answer:
		kind = KindResponse
	case whole && e.method.isText():
		kind = KindNotification
	default:
		return KindInvalid, "", "", false
	}
	return kind, string(e.id), e.method.text(), true
}

// An envelopeReader stops its scan, as if at a fault, when it has what it needs.
type envelopeReader struct {
	scanner
	version, id, method token
	answer              bool // there is a result or an error
}

func (e *envelopeReader) member(key []byte, i int) int {
	e.answer = e.answer || string(key) == "result" || string(key) == "error"
	if e.known() {
		return -1
	}
	end := e.value(i, 1)
	if end < 0 || end == len(e.data) {
		return -1 // a number at the end of a beginning may go on
	}
	e.keep(key, e.data[i:end])
	if e.known() {
		return -1
	}
	return end
}

func (e *envelopeReader) keep(key []byte, value token) {
	switch {
	case string(key) == "jsonrpc":
		e.version = value
	case string(key) == "id" && !value.isNull():
		e.id = value
	case string(key) == "method":
		e.method = value
	}
}

func (e *envelopeReader) known() bool {
	return e.version != nil && e.id != nil && (e.method != nil || e.answer)
}
