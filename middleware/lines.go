package middleware

import (
	"bufio"
	"bytes"
	"io"
)

// lineBuffer is what is read of a server's output at once.
const lineBuffer = 64 << 10

// A lineReader reads the lines of a server's output (MCP, stdio transport: messages
// are delimited by newlines and contain none). Memory is bounded by limit, however
// long a line gets.
type lineReader struct {
	src   *bufio.Reader
	limit func() int64 // of a line, in bytes; 0 or less is none
}

func newLineReader(r io.Reader, limit func() int64) *lineReader {
	return &lineReader{bufio.NewReaderSize(r, lineBuffer), limit}
}

// A line is one line of output, without its end.
type line struct {
	data    []byte // not shared with the reader
	tooLong bool   // data is only the beginning
	cut     bool   // the output ended before the line did
}

// next reads one line. An error comes with the last one, which may be empty.
func (r *lineReader) next() (line, error) {
	var l line
	for {
		chunk, err := r.src.ReadSlice('\n')
		l.add(chunk, r.limit)
		switch err {
		case nil:
			l.data = bytes.TrimRight(l.data, "\r\n")
			return l, nil
		case bufio.ErrBufferFull:
		default:
			l.cut = true
			return l, err
		}
	}
}

// add appends a part of the line, or drops it beyond the limit.
func (l *line) add(chunk []byte, limit func() int64) {
	if l.tooLong {
		return
	}
	// What fits the buffer is read in any case, and judged by its size later.
	if len(l.data) > 0 && beyond(len(l.data)+len(chunk), limit()) {
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
// Many servers write their log to standard output, often as JSON objects: such a
// line must not be taken for an answer. echoed says that it carries the id of the
// request that was sent.
func (l *line) isMessage(echoed bool) bool {
	data := bytes.TrimPrefix(bytes.TrimSpace(l.data), []byte("\xef\xbb\xbf"))
	if len(data) == 0 || data[0] != '{' && data[0] != '[' {
		return false
	}
	return bytes.Contains(data, []byte(`"jsonrpc"`)) ||
		echoed && (bytes.Contains(data, []byte(`"result"`)) || bytes.Contains(data, []byte(`"error"`)))
}
