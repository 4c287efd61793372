package middlewaretest_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

// A raw client: one request on one TCP connection, and every byte that comes
// back.

// How the connection went on after the last byte.
const (
	complete = "complete"
	closed   = "closed"
	reset    = "reset"
	silent   = "silent"
)

// How long a server has to send nothing to count as silent: not long where that
// is what the test expects.
const (
	quiet    = 100 * time.Millisecond
	patience = 20 * time.Second
)

type answer struct {
	raw    []byte
	status int
	header http.Header
	body   []byte
	ending string
}

// send posts a body and reads until the answer is complete, the connection ends,
// or nothing comes any more.
func send(t *testing.T, s *middlewaretest.Server, header, body string) answer {
	t.Helper()
	return sendAndWait(t, s, patience, header, body)
}

func sendAndWait(t *testing.T, s *middlewaretest.Server, wait time.Duration, header, body string) answer {
	t.Helper()
	return exchange(t, s, wait, "POST", "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+header, body)
}

func exchange(t *testing.T, s *middlewaretest.Server, wait time.Duration, method, header, body string) answer {
	t.Helper()
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	before := s.Counts().Requests
	fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %d\r\n\r\n%s", method, u.Path, u.Host, header, len(body), body)
	received := func() bool { return s.Counts().Requests > before }
	return readAnswer(t, &deadlined{Conn: c, wait: wait, received: received}, method)
}

func readAnswer(t *testing.T, c io.Reader, method string) answer {
	t.Helper()
	var raw bytes.Buffer
	r := bufio.NewReader(io.TeeReader(c, &raw))
	a := answer{}
	resp, err := http.ReadResponse(r, &http.Request{Method: method})
	for err == nil && resp.StatusCode/100 == 1 {
		resp, err = http.ReadResponse(r, &http.Request{Method: method})
	}
	if err == nil {
		a.status, a.header = resp.StatusCode, resp.Header
		a.body, err = io.ReadAll(resp.Body)
	}
	a.raw = raw.Bytes()
	a.ending = ending(t, err)
	return a
}

func ending(t *testing.T, err error) string {
	t.Helper()
	var timeout net.Error
	switch {
	case err == nil:
		return complete
	case errors.Is(err, syscall.ECONNRESET):
		return reset
	case errors.As(err, &timeout) && timeout.Timeout():
		return silent
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return closed
	}
	t.Fatalf("reading: %v", err)
	return ""
}

// deadlined gives every read a time of its own, which on a busy machine does not
// begin before the server has received the request.
type deadlined struct {
	net.Conn
	wait     time.Duration
	received func() bool
	waited   bool // since the request was received
}

func (d *deadlined) Read(p []byte) (int, error) {
	for {
		_ = d.SetReadDeadline(time.Now().Add(d.wait))
		n, err := d.Conn.Read(p)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || d.waited {
			return n, err
		}
		d.waited = d.received()
	}
}

// legacySession begins a session and returns the header that carries it.
func legacySession(t *testing.T, s *middlewaretest.Server) string {
	t.Helper()
	a := send(t, s, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}`)
	id := a.header.Get("Mcp-Session-Id")
	if a.status != 200 || id == "" {
		t.Fatalf("initialize: %s", a.raw)
	}
	return "Mcp-Session-Id: " + id + "\r\n"
}

// canElicit is the _meta of a 2026-07-28 client that can ask its user.
const canElicit = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`

func callBody(tool, more string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + tool + `",` + more + canElicit + `}}`
}

// printable shows an answer without what differs from run to run.
func (a answer) printable(s *middlewaretest.Server) string {
	text := string(a.raw)
	head, body, _ := strings.Cut(text, "\r\n\r\n")
	if a.status != 0 && bytes.Contains(a.raw, []byte("103 Early Hints")) {
		_, rest, _ := strings.Cut(text, "\r\n\r\n")
		head, body, _ = strings.Cut(rest, "\r\n\r\n")
		head = "HTTP/1.1 103 Early Hints\n" + head
	}
	var out strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(head, "\r", "")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name {
		case "Date":
			continue
		case "Content-Length":
			if strings.HasPrefix(body, "\x1f\x8b") {
				continue
			}
		case "Retry-After":
			if strings.Contains(value, "GMT") {
				line = "Retry-After: (date)\n"
			}
		case "Mcp-Session-Id":
			line = "Mcp-Session-Id: " + strings.TrimRight(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") + "(id)\n"
		}
		out.WriteString(strings.TrimSpace(line) + "\n")
	}
	if strings.HasPrefix(body, "\x1f\x8b") {
		body = "(gzip)" // whose bytes may change with the library
	}
	u, _ := url.Parse(s.URL())
	shown := strings.ReplaceAll(out.String(), ":"+u.Port(), ":PORT")
	return shown + "\n" + shorten(body) + "\n"
}

// shorten writes a body so that every byte can be told, and long runs are
// counted.
func shorten(body string) string {
	var out strings.Builder
	for i := 0; i < len(body); {
		j := i
		for j < len(body) && body[j] == body[i] {
			j++
		}
		if j-i > 40 {
			fmt.Fprintf(&out, "(%q x %d)", body[i], j-i)
			i = j
			continue
		}
		if body[i] == '\n' {
			out.WriteString("\\n\n")
		} else if c := body[i]; c == '\\' || c < 0x20 || c >= 0x7f {
			fmt.Fprintf(&out, "\\x%02x", c)
		} else {
			out.WriteByte(c)
		}
		i++
	}
	return out.String()
}
