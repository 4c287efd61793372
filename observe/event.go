package observe

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// An Event is one server-sent event (WHATWG HTML, section 9.2).
type Event struct {
	// Type is the "event" field, without white space around it, as the SDK reads
	// it: empty, like "message", for a JSON-RPC message.
	Type string
	// ID is the "id" field, HasID says that there was one: an empty one forgets
	// the last.
	ID    string
	HasID bool
	// Data is the "data" fields, joined by line feeds; nil if they are empty, as in
	// an event that only sets an id or the reconnection time.
	Data []byte
	// Retry is the reconnection time; HasRetry says that there was one.
	Retry    time.Duration
	HasRetry bool
	// Rewritten says that the event came in a form that the standard allows and
	// the SDK does not read (go-sdk v1.8.0): a line ended by CR alone, a line
	// without colon, a byte order mark. [AppendEvent] writes it in one that it
	// does.
	Rewritten bool
}

// IsMessage reports whether the event's type is that of a JSON-RPC message.
func (e Event) IsMessage() bool { return e.Type == "" || e.Type == "message" }

// AppendEvent appends the event to dst in the plain form that both the standard
// and the SDK read: fields with colon and space, LF line ends, one data line for
// each line of Data whatever ended it, a blank line. Type and ID are left out
// where they hold a line end.
//
// White space around a line of Data is lost on the SDK, which no JSON text
// notices: it has no line ends within strings.
func AppendEvent(dst []byte, e Event) []byte {
	if e.Type != "" {
		dst = appendField(dst, "event: ", e.Type)
	}
	if e.HasID {
		dst = appendField(dst, "id: ", e.ID)
	}
	if e.HasRetry {
		dst = appendField(dst, "retry: ", strconv.FormatInt(e.Retry.Milliseconds(), 10))
	}
	return append(appendData(dst, e.Data), '\n')
}

func appendField(dst []byte, name, value string) []byte {
	if strings.ContainsAny(value, "\r\n") {
		return dst
	}
	return append(append(append(dst, name...), value...), '\n')
}

func appendData(dst, data []byte) []byte {
	if len(data) == 0 {
		return dst
	}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		for part := range bytes.SplitSeq(bytes.TrimSuffix(line, []byte("\r")), []byte("\r")) {
			dst = append(append(append(dst, "data: "...), part...), '\n')
		}
	}
	return dst
}
