package observe

import "slices"

// Deviation names one way in which an answer departs from the specifications, or
// from what the SDK reads, without by itself deciding the outcome. Each is
// accepted and noted, or refused; which of the two is said at the constant and in
// the table in docs/reading.md, and [Reading] changes it.
type Deviation string

const (
	// DeviationErrorNull: "error": null beside a result. Accepted by default.
	DeviationErrorNull Deviation = "error_null"
	// DeviationResultType: a resultType other than "complete" on a protocol
	// version that does not define the member. Accepted by default.
	DeviationResultType Deviation = "result_type_undefined"
	// DeviationIDForm: an id that equals the request's numerically but is written
	// differently (7.0 for 7). Accepted by default.
	DeviationIDForm Deviation = "id_form"
	// DeviationCodeForm: an integer error code written with a fraction or an
	// exponent (-32602.0). Accepted by default; the SDK does not read it.
	DeviationCodeForm Deviation = "code_form"
	// DeviationUnknownMember: a member of a response that JSON-RPC 2.0 does not
	// define. Accepted by default.
	DeviationUnknownMember Deviation = "unknown_member"
	// DeviationInvalidUTF8: a string holds bytes that are not UTF-8 (RFC 8259,
	// section 8.1). Refused by default: the SDK would replace them silently.
	DeviationInvalidUTF8 Deviation = "invalid_utf8"
	// DeviationServerRequest: a request from the server on a stream of a protocol
	// version that has none (from 2026-07-28 on). Accepted by default: the SDK
	// answers it.
	DeviationServerRequest Deviation = "server_request"

	// DeviationSecondResponse: another response followed the terminal one on a
	// stream. Always accepted: the first one stands. Nobody waits for it: one that had
	// not come when the terminal one was read is not noted.
	DeviationSecondResponse Deviation = "second_response"
	// DeviationDataAfterResponse: a stream went on after the terminal response.
	// Always accepted. It is noted as [DeviationSecondResponse] is.
	DeviationDataAfterResponse Deviation = "data_after_response"
	// DeviationEventForm: an SSE event in a form that the SSE standard allows and
	// the SDK does not read: [Event.Rewritten]. Always accepted, and rewritten.
	DeviationEventForm Deviation = "event_form"
	// DeviationSessionID: an answer carried another session id than the request,
	// or one on a version without sessions. Always accepted: the header is
	// corrected.
	DeviationSessionID Deviation = "session_id"
	// DeviationStrayLine: over stdio, a line on the server's output that is not meant
	// as a message, such as a line of its log. Always accepted, and dropped.
	DeviationStrayLine Deviation = "stray_line"
	// DeviationUnclaimed: over stdio, a broken message, or a response under an id that
	// was never sent, while nothing told which call it was for. Always accepted, and
	// dropped: it is noted with every call that was under way.
	DeviationUnclaimed Deviation = "unclaimed_message"
)

// Deviations lists every deviation.
func Deviations() []Deviation {
	return []Deviation{
		DeviationErrorNull, DeviationResultType, DeviationIDForm,
		DeviationCodeForm, DeviationUnknownMember, DeviationInvalidUTF8,
		DeviationServerRequest, DeviationSecondResponse,
		DeviationDataAfterResponse, DeviationEventForm, DeviationSessionID,
		DeviationStrayLine, DeviationUnclaimed,
	}
}

// Reading says how strictly an answer is read. The zero value, and a nil pointer,
// read as the table in docs/reading.md says. It is not changed by reading and
// may be shared.
type Reading struct {
	// Strict refuses every deviation that is accepted by default, instead of
	// noting it. Those that are always accepted stay so.
	Strict bool
	// Tolerate accepts these deviations, whatever Strict or the default says.
	Tolerate []Deviation
	// ResultTypes are the values of resultType that extensions declared by the
	// host define, beside "complete" and "input_required". Such a result ends as
	// [ExtensionResult].
	ResultTypes []string
}

// accepts reports whether d is accepted under r.
func (r *Reading) accepts(d Deviation) bool {
	if r != nil && slices.Contains(r.Tolerate, d) {
		return true
	}
	return d != DeviationInvalidUTF8 && (r == nil || !r.Strict)
}

// declares reports whether an extension of the host defines the resultType.
func (r *Reading) declares(resultType string) bool {
	return r != nil && slices.Contains(r.ResultTypes, resultType)
}
