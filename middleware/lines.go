package middleware

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"iter"
)

// lineBuffer is what is read of a server's output at once.
const lineBuffer = 64 << 10

// A lineReader reads the lines of a server's output (MCP, stdio transport: messages
// are delimited by newlines and contain none). Memory is bounded by limit, however
// long a line gets.
type lineReader struct {
	src   *bufio.Reader
	limit func(beginning []byte) int64 // of a line that begins so, in bytes; 0 or less is none
	skip  bool                         // the rest of a line that was too long
}

func newLineReader(r io.Reader, limit func(beginning []byte) int64) *lineReader {
	return &lineReader{src: bufio.NewReaderSize(r, lineBuffer), limit: limit}
}

// A line is one line of output, without its end.
type line struct {
	data    []byte // not shared with the reader
	tooLong bool   // data is only the beginning; the rest is still to come
	cut     bool   // the output ended before the line did
}

// next reads one line, or the beginning of one that is too long as soon as it is. An
// error comes with the last one, which may be empty.
func (r *lineReader) next() (line, error) {
	var l line
	for {
		chunk, err := r.src.ReadSlice('\n')
		if r.skip {
			r.skip = err == bufio.ErrBufferFull
			chunk = nil
			if err == nil {
				continue
			}
		}
		switch l.add(chunk, r.limit); {
		case l.tooLong:
			r.skip = err == bufio.ErrBufferFull
			return l, unlessFull(err)
		case err == nil:
			l.data = bytes.TrimRight(l.data, "\r\n")
			return l, nil
		case err != bufio.ErrBufferFull:
			l.cut = true
			return l, err
		}
	}
}

func unlessFull(err error) error {
	if err == bufio.ErrBufferFull {
		return nil
	}
	return err
}

// add appends a part of the line, or drops it beyond the limit.
func (l *line) add(chunk []byte, limit func([]byte) int64) {
	// What fits the buffer is read in any case, and judged by its size later.
	if n := len(l.data) + len(chunk); len(l.data) > 0 && beyond(n, limit(l.data[:envelopePrefix])) {
		l.data, l.tooLong = bytes.Clone(l.data[:envelopePrefix]), true
		return
	}
	l.data = append(l.data, chunk...)
}

// beyond reports whether a line of some bytes, its end not counted, is over a limit.
func beyond(n int, limit int64) bool { return limit > 0 && int64(n) > limit+2 }

// isBlank reports whether nothing stands in the line.
func (l *line) isBlank() bool { return len(bytes.TrimSpace(l.data)) == 0 }

// isMessage reports whether the line is meant as a JSON-RPC message, however broken.
// Many servers write their log to standard output, often as JSON objects, and may quote
// messages there: such a line must not be taken for an answer. So it is the members of
// the object itself that count, or of the first one in a batch, as far as they can be
// read: "jsonrpc" is among them, or, where the line echoes the id of a request that was
// sent, none that an answer does not have.
func (l *line) isMessage(echoed bool) bool {
	data := bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(l.data), []byte("\xef\xbb\xbf")))
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("[")))
	answer, foreign := false, false
	for name := range members(data) {
		switch name {
		case "jsonrpc":
			return true
		case "result", "error":
			answer = true
		case "id":
		default:
			foreign = true
		}
	}
	return echoed && answer && !foreign
}

// members are the names of an object's own members, as far as it can be read.
func members(data []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		dec := json.NewDecoder(bytes.NewReader(data))
		if t, err := dec.Token(); err != nil || t != json.Delim('{') {
			return
		}
		for dec.More() {
			name, err := dec.Token()
			if text, ok := name.(string); err != nil || !ok || !yield(text) || !skipValue(dec) {
				return
			}
		}
	}
}

// skipValue reads past one value.
func skipValue(dec *json.Decoder) bool {
	for depth := 0; ; {
		switch t, err := dec.Token(); {
		case err != nil:
			return false
		case t == json.Delim('{'), t == json.Delim('['):
			depth++
		case t == json.Delim('}'), t == json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return true
		}
	}
}
