package observe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/surecall/surecall/observe"
)

// events reads src to its end.
func events(src io.Reader, limit int) ([]observe.Event, *observe.EventReader, error) {
	r := observe.NewEventReader(src, limit)
	var all []observe.Event
	for {
		e, err := r.Next()
		if err != nil {
			return all, r, err
		}
		all = append(all, e)
	}
}

// message is an event of nothing but data.
func message(data string) observe.Event { return observe.Event{Data: []byte(data)} }

// odd is an event that came in a form the SDK does not read.
func odd(e observe.Event) observe.Event {
	e.Rewritten = true
	return e
}

func TestEventReader(t *testing.T) {
	long := strings.Repeat("0123456789", 2000) // spans chunks
	cases := []struct {
		name, stream string
		want         []observe.Event
	}{
		{"LF", "data: a\n\n", []observe.Event{message("a")}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []observe.Event{message("a"), message("b")}},
		{"CR", "data: a\r\rdata: b\r\r", []observe.Event{odd(message("a")), odd(message("b"))}},
		{"ends mixed", "data: a\r\n\ndata: b\n\r\n", []observe.Event{message("a"), message("b")}},
		{"CR then LF is one end", "data: a\r\ndata: b\n\n", []observe.Event{message("a\nb")}},
		{"byte order mark", "\xEF\xBB\xBFdata: a\n\ndata: b\n\n", []observe.Event{odd(message("a")), message("b")}},
		{"byte order mark later is no mark", "data: a\n\n\xEF\xBB\xBFdata: b\n\n", []observe.Event{message("a")}},
		{"byte order mark on a blank line", "\xEF\xBB\xBF\ndata: a\n\n", []observe.Event{odd(message("a"))}},
		{"comments", ": hello\n:\ndata: a\n: between\n\n:\n\n", []observe.Event{message("a")}},
		{"lines joined", "data: a\ndata:\ndata: b\n\n", []observe.Event{message("a\n\nb")}},
		{"one space only is cut", "data:  a \n\n", []observe.Event{message(" a ")}},
		{"no space", "data:a\n\n", []observe.Event{message("a")}},
		{"colons in the value", "data: a: b\n\n", []observe.Event{message("a: b")}},
		{"type", "event: ping\ndata: a\n\ndata: b\n\n", []observe.Event{{Type: "ping", Data: []byte("a")}, message("b")}},
		{"type with white space", "event:  message\t\ndata: a\n\n", []observe.Event{{Type: "message", Data: []byte("a")}}},
		{"last type counts", "event: x\nevent:\ndata: a\n\n", []observe.Event{message("a")}},
		{"type alone", "event: x\n\ndata: a\n\n", []observe.Event{message("a")}},
		{"id", "id: 7\ndata: a\n\n", []observe.Event{{ID: "7", HasID: true, Data: []byte("a")}}},
		{"id without data", "id: 7\ndata:\n\n", []observe.Event{{ID: "7", HasID: true}}},
		{"id alone", "id: 7\n\n", []observe.Event{{ID: "7", HasID: true}}},
		{"id empty", "id:\n\n", []observe.Event{{HasID: true}}},
		{"id with NUL", "id: 7\x00\ndata: a\n\n", []observe.Event{message("a")}},
		{"retry", "retry: 1500\n\n", []observe.Event{{Retry: 1500 * time.Millisecond, HasRetry: true}}},
		{"retry not digits", "retry: 1.5\ndata: a\n\n", []observe.Event{message("a")}},
		{"retry negative", "retry: -1\ndata: a\n\n", []observe.Event{message("a")}},
		{"retry empty", "retry:\ndata: a\n\n", []observe.Event{message("a")}},
		{"retry beyond time", "retry: 99999999999999999999\n\n", []observe.Event{{Retry: 9223372036854 * time.Millisecond, HasRetry: true}}},
		{"retry as large as a number", "retry: 9223372036854775807\n\n", []observe.Event{{Retry: 9223372036854 * time.Millisecond, HasRetry: true}}},
		{"data empty", "data\n\ndata:\n\n", []observe.Event{odd(observe.Event{}), {}}},
		{"two empty data", "data\ndata\n\n", []observe.Event{odd(message("\n"))}},
		{"unknown field", "foo: x\ndata: a\n\n", []observe.Event{message("a")}},
		{"unknown field without colon", "foo\ndata: a\n\n", []observe.Event{odd(message("a"))}},
		{"unknown field before a blank line", "foo\n\ndata: a\n\n", []observe.Event{odd(message("a"))}},
		{"field names have a case", "Data: x\ndata: a\n\n", []observe.Event{message("a")}},
		{"space before a name", " data: x\ndata: a\n\n", []observe.Event{message("a")}},
		{"blank lines", "\n\n\ndata: a\n\n\n\n", []observe.Event{message("a")}},
		{"cut in a line", "data: a\n\ndata: b", []observe.Event{message("a")}},
		{"cut before the blank line", "data: a\n\ndata: b\n", []observe.Event{message("a")}},
		{"empty stream", "", nil},
		{"long line", "data: " + long + "\n\ndata: b\n\n", []observe.Event{message(long), message("b")}},
		{"long lines", "data: " + long + "\r\ndata: " + long + "\r\n\r\n", []observe.Event{message(long + "\n" + long)}},
		{"long comment", ":" + long + "\ndata: b\n\n", []observe.Event{message("b")}},
		{"many events", strings.Repeat("data: a\n\n", 3000), repeat(message("a"), 3000)},
	}
	for _, c := range cases {
		for name, src := range map[string]io.Reader{
			"whole":      strings.NewReader(c.stream),
			"byte-wise":  iotest.OneByteReader(strings.NewReader(c.stream)),
			"error soon": iotest.DataErrReader(strings.NewReader(c.stream)),
			"by 4095":    pieces([]byte(c.stream), 4095),
		} {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				got, _, err := events(src, 0)
				if err != io.EOF {
					t.Fatalf("error %v", err)
				}
				if !reflect.DeepEqual(got, c.want) {
					t.Errorf("got %s\nwant %s", show(got), show(c.want))
				}
			})
		}
	}
}

func repeat(e observe.Event, n int) []observe.Event {
	all := make([]observe.Event, n)
	for i := range all {
		all[i] = e
	}
	return all
}

func show(all []observe.Event) string {
	var b strings.Builder
	for _, e := range all[:min(len(all), 5)] {
		fmt.Fprintf(&b, "{%q id %q %v data %.40q (nil: %v) retry %v %v rewritten %v} ", e.Type, e.ID, e.HasID, e.Data, e.Data == nil, e.Retry, e.HasRetry, e.Rewritten)
	}
	return b.String()
}

// An event is there as soon as its blank line is: with CR, before the LF that may
// or may not follow, and without another Read.
func TestEventReaderDoesNotWait(t *testing.T) {
	for _, end := range []string{"\n\n", "\r\r", "\r\n\r", "\r\n\r\n"} {
		src := io.MultiReader(strings.NewReader("data: a"+end), iotest.ErrReader(errors.New("read too far")))
		r := observe.NewEventReader(src, 0)
		if e, err := r.Next(); err != nil || string(e.Data) != "a" {
			t.Errorf("%q: %q, %v", end, e.Data, err)
		}
		if n := len(r.Buffered()); n != 0 {
			t.Errorf("%q: %d bytes buffered", end, n)
		}
	}
}

func TestEventReaderBuffered(t *testing.T) {
	for _, c := range []struct{ stream, want string }{
		{"data: a\n\n", ""},
		{"data: a\r\n\r\n", ""},
		{"data: a\n\ndata: b\n\n", "data: b\n\n"},
		{"data: a\r\n\r\n: x", ": x"},
		{"data: a\r\r\n\n", "\n"},
	} {
		r := observe.NewEventReader(strings.NewReader(c.stream), 0)
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		if got := string(r.Buffered()); got != c.want {
			t.Errorf("%q: buffered %q, want %q", c.stream, got, c.want)
		}
	}
}

func TestEventReaderEnd(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name, stream string
		err          error // after the stream
		unfinished   bool
	}{
		{"after an event", "data: a\n\n", io.EOF, false},
		{"after CR", "data: a\r\r", io.EOF, false},
		{"at once", "", io.EOF, false},
		{"after a comment", "data: a\n\n: b\n", io.EOF, false},
		{"within a line", "data: a\n\ndata", io.EOF, true},
		{"before the blank line", "data: a\n", io.EOF, true},
		{"broken after an event", "data: a\n\n", broken, false},
		{"broken within one", "data: a\n\nid: 1\n", broken, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, r, err := events(io.MultiReader(strings.NewReader(c.stream), iotest.ErrReader(c.err)), 0)
			if err != c.err || r.Unfinished() != c.unfinished {
				t.Errorf("error %v, unfinished %v", err, r.Unfinished())
			}
			if _, again := r.Next(); again != c.err {
				t.Errorf("the error does not stay: %v", again)
			}
		})
	}
}

// What comes with an error counts, and the source is not asked again.
func TestEventReaderDataWithError(t *testing.T) {
	broken, reads := errors.New("broken"), 0
	src := readerFunc(func(p []byte) (int, error) {
		if reads++; reads > 1 {
			return 0, errors.New("asked again")
		}
		return copy(p, "data: a\n\ndata: b\n\n"), broken
	})
	if got, _, err := events(src, 0); len(got) != 2 || err != broken {
		t.Errorf("%d events, %v", len(got), err)
	}
}

func TestEventReaderStuckSource(t *testing.T) {
	_, _, err := events(readerFunc(func([]byte) (int, error) { return 0, nil }), 0)
	if err != io.ErrNoProgress {
		t.Errorf("error %v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestEventReaderLimit(t *testing.T) {
	line := "data: 0123456789\n" // 17 bytes
	long := "data: " + strings.Repeat("x", 20000) + "\n"
	for _, c := range []struct {
		name, stream string
		limit        int
		want         int // events before the end
		err          error
	}{
		{"at the limit", line + "\n", 18, 1, io.EOF},
		{"one less", line + "\n", 17, 0, observe.ErrEventTooLarge},
		{"each event has its own", strings.Repeat(line+"\n", 10), 18, 10, io.EOF},
		{"each long event has its own", strings.Repeat(long+"\n", 4), len(long) + 1, 4, io.EOF},
		{"lines add up", line + line + "\n", 30, 0, observe.ErrEventTooLarge},
		{"unknown fields add up", "x: 0123456789\nx: 0123456789\n" + line + "\n", 40, 0, observe.ErrEventTooLarge},
		{"comments do not", strings.Repeat(":keep-alive\n", 100) + line + "\n", 18, 1, io.EOF},
		{"a long comment", ":" + strings.Repeat("x", 100) + "\n", 18, 0, observe.ErrEventTooLarge},
		{"a line without end", strings.Repeat("x", 100), 18, 0, observe.ErrEventTooLarge},
		{"an event before", line + "\n" + line + line, 18, 1, observe.ErrEventTooLarge},
	} {
		for _, size := range []int{1, 7, 1000} {
			t.Run(fmt.Sprintf("%s/%d", c.name, size), func(t *testing.T) {
				got, r, err := events(pieces([]byte(c.stream), size), c.limit)
				if len(got) != c.want || err != c.err {
					t.Errorf("%d events, %v", len(got), err)
				}
				if _, again := r.Next(); again != c.err {
					t.Errorf("the error does not stay: %v", again)
				}
				if r.Unfinished() != (c.err != io.EOF) {
					t.Errorf("unfinished: %v", r.Unfinished())
				}
			})
		}
	}
}

// A source without end costs no more than the limit.
func TestEventReaderMemory(t *testing.T) {
	const limit = 1 << 20
	given := 0
	endless := readerFunc(func(p []byte) (int, error) {
		copy(p, bytes.Repeat([]byte("x"), len(p)))
		given += len(p)
		return len(p), nil
	})
	_, _, err := events(endless, limit)
	if err != observe.ErrEventTooLarge || given > 2*limit {
		t.Errorf("read %d bytes, %v", given, err)
	}
}

// The data of an event is the caller's: it stays when the reader goes on.
func TestEventReaderDataStays(t *testing.T) {
	got, _, _ := events(pieces([]byte(strings.Repeat("data: aaaa\n\ndata: bbbb\n\n", 500)), 100), 0)
	for i, e := range got {
		if want := []string{"aaaa", "bbbb"}[i%2]; string(e.Data) != want {
			t.Fatalf("event %d is %q", i, e.Data)
		}
		e.Data = append(e.Data, "spoilt"...)
	}
}

func TestAppendEvent(t *testing.T) {
	for _, c := range []struct {
		name  string
		event observe.Event
		want  string
	}{
		{"data", message("a"), "data: a\n\n"},
		{"everything", observe.Event{Type: "message", ID: "7", HasID: true, Retry: 2 * time.Second, HasRetry: true, Data: []byte("a\nb")}, "event: message\nid: 7\nretry: 2000\ndata: a\ndata: b\n\n"},
		{"id alone", observe.Event{ID: "7", HasID: true}, "id: 7\n\n"},
		{"empty id", observe.Event{HasID: true}, "id: \n\n"},
		{"line ends of any kind", message("a\r\nb\rc\n\nd"), "data: a\ndata: b\ndata: c\ndata: \ndata: d\n\n"},
		{"no line breaks out of a field", observe.Event{Type: "x\ndata: y", ID: "1\rdata: y", HasID: true, Data: []byte("a")}, "data: a\n\n"},
		{"nothing", observe.Event{}, "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(observe.AppendEvent([]byte("before "), c.event)); got != "before "+c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestIsMessage(t *testing.T) {
	for typ, want := range map[string]bool{"": true, "message": true, "Message": false, "ping": false, "endpoint": false} {
		if got := (observe.Event{Type: typ}).IsMessage(); got != want {
			t.Errorf("%q: %v", typ, got)
		}
	}
}

// Whatever the form in which a stream arrives, the SDK reads what is written
// again.
func TestSDKReadsRewrittenEvents(t *testing.T) {
	lines := []string{`{"jsonrpc":"2.0",`, ` "id":%s,`, `  "result":{"content":[`, `{"type":"text","text":" two  spaces\u00a0 "}]}}`}
	joined := strings.Join(lines, "\n")
	for _, c := range []struct{ name, stream string }{
		{"plain", "event: message\ndata: " + strings.Join(lines, "") + "\n\n"},
		{"CR", "data: " + strings.Join(lines, "") + "\r\r"},
		{"lines", "data: " + strings.ReplaceAll(joined, "\n", "\ndata: ") + "\n\n"},
		{"lines, CR and no space", "data:" + strings.ReplaceAll(joined, "\n", "\rdata:") + "\r\r"},
		{"byte order mark", "\xEF\xBB\xBFdata: " + strings.Join(lines, "") + "\n\n"},
		{"bare fields", "event\nid\nfoo\ndata: " + strings.Join(lines, "") + "\n\n"},
		{"priming event", "id: 1\nretry: 5\ndata:\n\ndata\n\ndata: " + strings.Join(lines, "") + "\n\n"},
		{"other events", "event: ping\ndata: ping\n\n: x\n\ndata: " + strings.Join(lines, "") + "\n\n"},
		{"type with white space", "event:  message \ndata: " + strings.Join(lines, "") + "\n\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			result, err := callThroughSDK(t, func(id string) []byte {
				all, _, err := events(strings.NewReader(strings.Replace(c.stream, "%s", id, 1)), 0)
				if err != io.EOF {
					t.Error(err)
				}
				var rewritten []byte
				for _, e := range all {
					rewritten = observe.AppendEvent(rewritten, e)
				}
				return rewritten
			})
			if err != nil {
				t.Fatal(err)
			}
			if text := result.Content[0].(*mcp.TextContent).Text; text != " two  spaces\u00a0 " {
				t.Errorf("text %q", text)
			}
		})
	}
}

// callThroughSDK makes one call with the SDK's client, which receives stream.
func callThroughSDK(t *testing.T, stream func(id string) []byte) (*mcp.CallToolResult, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint:             "http://peer.invalid/mcp",
		HTTPClient:           &http.Client{Transport: peer(stream)},
		DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	return session.CallTool(ctx, &mcp.CallToolParams{Name: "x"})
}

// peer is a server of 2025-11-25 without a network, whose answer to a call is the
// stream.
type peer func(id string) []byte

func (p peer) RoundTrip(req *http.Request) (*http.Response, error) {
	body := []byte(nil)
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
		req.Body.Close()
	}
	_, id, method, _ := observe.Envelope(body)
	switch method {
	case "initialize":
		return respond(req, 200, "application/json", fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"peer","version":"1"}}}`, id)), nil
	case "tools/call":
		return respond(req, 200, "text/event-stream", p(id)), nil
	case "notifications/initialized":
		return respond(req, 202, "", nil), nil
	}
	return respond(req, 200, "application/json", fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, id)), nil
}

func respond(req *http.Request, status int, contentType string, body []byte) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(bytes.NewReader(body)), Request: req,
	}
}
