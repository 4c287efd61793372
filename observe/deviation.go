package observe

// Deviation names one way in which an answer departs from the specifications
// without, by itself, deciding the outcome. Each is accepted and noted, or
// refused; which of the two is the column "default" of the table in
// docs/outcomes.md, and [Reading] changes it.
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
	// exponent (-32602.0). Accepted by default.
	DeviationCodeForm Deviation = "code_form"
	// DeviationUnknownMember: a member of the envelope that JSON-RPC 2.0 does not
	// define. Accepted by default.
	DeviationUnknownMember Deviation = "unknown_member"
	// DeviationInvalidUTF8: a string holds bytes that are not UTF-8 (RFC 8259,
	// section 8.1). Refused by default: the SDK would replace them silently.
	DeviationInvalidUTF8 Deviation = "invalid_utf8"
	// DeviationSecondResponse: another response followed the terminal one on a
	// stream. Accepted: the first one stands.
	DeviationSecondResponse Deviation = "second_response"
	// DeviationDataAfterResponse: a stream went on after the terminal response.
	// Accepted.
	DeviationDataAfterResponse Deviation = "data_after_response"
	// DeviationServerRequest: a request from the server on a stream of a protocol
	// version that has none (2026-07-28). Accepted: the SDK answers it.
	DeviationServerRequest Deviation = "server_request"
	// DeviationEventForm: an SSE line without a colon, which the SSE standard
	// allows and the SDK does not. Accepted and rewritten.
	DeviationEventForm Deviation = "event_form"
	// DeviationSessionID: an answer carried another session id than the request,
	// or one on a version without sessions. Accepted: the header is corrected.
	DeviationSessionID Deviation = "session_id"
)

// Reading says how strictly an answer is read. The zero value reads as the
// table in docs/outcomes.md says.
type Reading struct {
	// Strict refuses every deviation that decides nothing by itself, instead of
	// noting it.
	Strict bool
	// Tolerate accepts these deviations, whatever Strict or the default says.
	Tolerate []Deviation
	// ResultTypes are the values of resultType that extensions declared by the
	// host define, beside "complete" and "input_required". Such a result ends as
	// [ExtensionResult].
	ResultTypes []string
}

// accepts reports whether d is accepted under r, given its default.
func (r *Reading) accepts(d Deviation, byDefault bool) bool {
	if r == nil {
		return byDefault
	}
	for _, t := range r.Tolerate {
		if t == d {
			return true
		}
	}
	return byDefault && !r.Strict
}
