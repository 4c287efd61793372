package observe

import "time"

// A Post is what was seen of one HTTP POST of a call and its answer; or, without
// HTTP, of one request.
type Post struct {
	// ID is the JSON-RPC id, as JSON. A second POST with the same id repeats the
	// first (authorization, a redirect); another id is a further round.
	ID string
	// Status is the HTTP status, or 0 where no response came.
	Status int
	// HTTPVersion is the response's protocol version, such as "1.1" or "2"; empty where
	// no response came.
	HTTPVersion string
	// ContentType is the response's media type, without parameters.
	ContentType string
	// Round of a multi-round-trip call, from 1; 0 where nobody counts.
	Round int
	// Waits are those between the attempt's beginning, or its last POST, and this one.
	Waits []Wait
	// Started and Took are when the POST began, and how long it took until the
	// verdict was known.
	Started time.Time
	Took    time.Duration
	// Bytes of the body that were read.
	Bytes int64
	// Location is the origin that a redirect names.
	Location string
	// Verdict is what the POST came to; its Outcome is empty while that is open.
	Verdict Verdict
	// RetryAfter is the server's wait; HasRetryAfter says whether it gave one.
	RetryAfter    time.Duration
	HasRetryAfter bool
	// DoNotRetry says that the server asks not to send the request again.
	DoNotRetry bool
	// Stream describes the SSE body; nil where there was none.
	Stream *Stream
	// Replays counts how often the layer below wrote the request again without
	// being asked to.
	Replays int
	// Redactor knows what the POST carried; nil where nothing of the answer is quoted.
	Redactor *Redactor
	// Excerpt is the redacted beginning of an unusable body.
	Excerpt string
	// Healed says that the session, which this POST found lost or which was known to
	// be, has been renewed on its behalf.
	Healed bool
	// Limited says that a limit of the policy ended the POST.
	Limited bool
	// SessionEnded says that the session ended with the POST: what is called in it
	// afterwards is not sent.
	SessionEnded bool
	// Cause is the error of the layer below, if any.
	Cause error
}

// Stream is what was seen of an SSE body.
type Stream struct {
	// Events counts the events dispatched, comments not included.
	Events int `json:"events"`
	// Terminal says that a response to the call arrived.
	Terminal bool `json:"terminal"`
	// Close says how the stream ended: "complete" (after the response), "ended"
	// (without one), "cut" (a read error), "limit", "canceled", or "" while open.
	Close string `json:"close"`
	// Resumed counts the resumptions by Last-Event-ID that the server granted.
	Resumed int `json:"resumed,omitempty"`
}

// open reports whether the POST had not come to its end when it was looked at.
func (p *Post) open() bool { return p.Verdict.Outcome == "" }

// answered reports whether one complete valid response came for this POST.
func (p *Post) answered() bool { return p.Verdict.Outcome.Answered() }
