package observe

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// ErrEventTooLarge is returned by [EventReader.Next] when an event, or a line of
// any kind, is larger than the reader's limit. The stream cannot be read further.
var ErrEventTooLarge = errors.New("observe: an SSE event is larger than the limit")

// The sizes of a reader's chunks: each is twice the one before, so that a short
// answer costs little and a long one is read in few pieces.
const (
	firstChunk = 4 << 10
	lastChunk  = 256 << 10
)

// maxEmptyReads is how often in a row a source may give neither bytes nor an error.
const maxEmptyReads = 100

// An EventReader reads the events of a stream (WHATWG HTML, section 9.2.6) as they
// arrive: it asks its source for more only while the blank line that ends an event
// is missing. It holds no more than its limit and one chunk, and twice the limit
// while a long line is put together. It is not safe for concurrent use.
type EventReader struct {
	src   io.Reader
	limit int

	// chunk[pos:] was read and not yet taken; pending are earlier chunks of the
	// line that has not come to its end, held their bytes.
	chunk   []byte
	pos     int
	pending [][]byte
	held    int
	// lf and cr are where the next LF and CR of chunk stand or, there being none,
	// its length: no byte is searched twice.
	lf, cr int

	begun   bool  // the first line was taken
	afterCR bool  // the last line was ended by CR: an LF now would belong to it
	event   Event // the event so far
	hasData bool  // it has a data line
	size    int   // its lines' bytes
	srcErr  error // came with the bytes of the last read
	err     error // what Next returns from now on
}

// NewEventReader returns a reader of the events in src. limit bounds the bytes of
// one event's lines; 0 or less means no limit.
func NewEventReader(src io.Reader, limit int) *EventReader {
	if limit <= 0 {
		limit = math.MaxInt
	}
	return &EventReader{src: src, limit: limit}
}

// Next returns the next event that has data, an id or a reconnection time. Its
// Data belongs to the caller. The error is [io.EOF] at the end of the stream,
// [ErrEventTooLarge], or the source's own; it stays.
func (r *EventReader) Next() (Event, error) {
	for r.err == nil {
		line, fresh, err := r.line()
		if err != nil {
			r.err, r.pending, r.event = err, nil, Event{}
			break
		}
		if len(line) > 0 {
			r.field(line, fresh)
		} else if e, ok := r.dispatch(); ok {
			return e, nil
		}
	}
	return Event{}, r.err
}

// Buffered returns the bytes that were read from the source and do not belong to
// an event returned so far. They are the reader's, and valid until the next call
// of Next. After an event it tells, without reading, whether anything came behind.
func (r *EventReader) Buffered() []byte {
	r.skipLF()
	return r.chunk[r.pos:]
}

// Unfinished reports whether the stream ended, or broke, within an event or a
// line. Such an event is dropped, as the standard says.
func (r *EventReader) Unfinished() bool {
	return r.err != nil && (r.size > 0 || r.held > 0 || r.pos < len(r.chunk))
}

// line returns the next line without its end. It is valid until the next call,
// and the caller's if it is fresh.
func (r *EventReader) line() (line []byte, fresh bool, err error) {
	for {
		r.skipLF()
		end := r.lineEnd()
		partial := r.size + r.held + end - r.pos
		switch {
		case partial > r.limit || partial == r.limit && end < len(r.chunk):
			return nil, false, ErrEventTooLarge
		case end < len(r.chunk):
			line, fresh = r.take(end)
			return line, fresh, nil
		}
		if err := r.fill(); err != nil {
			return nil, false, err
		}
	}
}

// skipLF skips the LF of a CRLF. The line was taken at its CR already, for no
// server has to send more before the next event.
func (r *EventReader) skipLF() {
	if !r.afterCR || r.pos == len(r.chunk) {
		return
	}
	r.afterCR = false
	if r.chunk[r.pos] == '\n' {
		r.pos++
	} else {
		r.event.Rewritten = true
	}
}

// lineEnd returns where the end of the line stands in chunk, or its length.
func (r *EventReader) lineEnd() int {
	r.lf = seek(r.chunk, max(r.lf, r.pos), '\n')
	r.cr = seek(r.chunk, max(r.cr, r.pos), '\r')
	return min(r.lf, r.cr)
}

func seek(data []byte, from int, c byte) int {
	if i := bytes.IndexByte(data[from:], c); i >= 0 {
		return from + i
	}
	return len(data)
}

// take takes the line that ends at end. One that spans chunks is put together in
// a slice of its own: the one copy that a large event costs.
func (r *EventReader) take(end int) (line []byte, fresh bool) {
	line = r.chunk[r.pos:end]
	r.afterCR = r.chunk[end] == '\r'
	r.pos = end + 1
	if fresh = len(r.pending) > 0; fresh {
		line = bytes.Join(append(r.pending, line), nil)
		r.pending, r.held = nil, 0
	}
	if !r.begun {
		r.begun = true
		line, r.event.Rewritten = bytes.CutPrefix(line, bom)
	}
	return line, fresh
}

// fill reads once.
func (r *EventReader) fill() error {
	if r.srcErr != nil {
		return r.srcErr
	}
	r.makeRoom()
	for range maxEmptyReads {
		n, err := r.src.Read(r.chunk[len(r.chunk):cap(r.chunk)])
		r.chunk = r.chunk[:len(r.chunk)+n]
		if n > 0 {
			r.srcErr = err
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// makeRoom makes room for a read behind the line that has begun. Most of a chunk
// is not moved but set aside until the line's end is there.
func (r *EventReader) makeRoom() {
	rest := r.chunk[r.pos:]
	switch {
	case len(rest) > 0 && len(r.chunk) < cap(r.chunk):
		return
	case r.chunk == nil:
		r.chunk = make([]byte, 0, firstChunk)
	case len(rest) <= cap(r.chunk)/2:
		r.chunk = r.chunk[:copy(r.chunk, rest)]
	default:
		r.pending, r.held = append(r.pending, rest), r.held+len(rest)
		r.chunk = make([]byte, 0, min(2*cap(r.chunk), lastChunk))
	}
	r.pos, r.lf, r.cr = 0, len(r.chunk), len(r.chunk)
}

// field takes one line, which is not blank, into the event.
func (r *EventReader) field(line []byte, fresh bool) {
	name, value, colon := bytes.Cut(line, []byte(":"))
	if colon && len(name) == 0 {
		return // a comment
	}
	r.size += len(line) + 1
	value = bytes.TrimPrefix(value, []byte(" "))
	e := &r.event
	e.Rewritten = e.Rewritten || !colon
	switch string(name) {
	case "event":
		e.Type = strings.TrimSpace(string(value))
	case "data":
		r.data(value, fresh)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			e.ID, e.HasID = string(value), true
		}
	case "retry":
		if d, ok := retryTime(value); ok {
			e.Retry, e.HasRetry = d, true
		}
	}
}

// data adds a data line.
func (r *EventReader) data(value []byte, fresh bool) {
	switch {
	case r.hasData:
		r.event.Data = append(append(r.event.Data, '\n'), value...)
	case fresh:
		r.event.Data = value
	default:
		r.event.Data = bytes.Clone(value)
	}
	r.hasData = true
}

// dispatch ends the event at a blank line. Nothing is lost of what says that the
// stream's form is not the SDK's.
func (r *EventReader) dispatch() (e Event, ok bool) {
	e, ok = r.event, r.hasData || r.event.HasID || r.event.HasRetry
	if len(e.Data) == 0 {
		e.Data = nil
	}
	r.event, r.hasData, r.size = Event{Rewritten: e.Rewritten && !ok}, false, 0
	return e, ok
}

// retryTime reads a reconnection time: digits only, in milliseconds.
func retryTime(value []byte) (time.Duration, bool) {
	for _, c := range value {
		if !isDigit(c) {
			return 0, false
		}
	}
	const most = int64(math.MaxInt64 / time.Millisecond)
	ms, err := strconv.ParseInt(string(value), 10, 64)
	if errors.Is(err, strconv.ErrRange) || ms > most {
		ms = most
	}
	return time.Duration(ms) * time.Millisecond, len(value) > 0
}
