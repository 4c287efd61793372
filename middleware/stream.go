package middleware

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/surecall/surecall/observe"
)

const (
	// drainLimit and drainTime bound what is read of a body after the answer, so
	// that the connection can be used again without waiting for a server that
	// keeps its stream open.
	drainLimit = 4 << 10
	drainTime  = 50 * time.Millisecond
)

// stream guards an SSE answer: events are judged as they come and written out
// again in the plain form that the SDK reads; whatever is not a complete terminal
// response becomes one error event with the call's id.
func (t *Transport) stream(p *post, resp *http.Response) *http.Response {
	p.update(func(s *observe.Post) { s.Stream = &observe.Stream{} })
	g := &streamGuard{transport: t, post: p, compressed: resp.Uncompressed}
	g.attach(resp.Body)
	resp.Body = g
	// The SDK does not read every form of the type that means this one.
	resp.Header.Set("Content-Type", "text/event-stream")
	resp.ContentLength = -1
	return resp
}

// streamGuard is the body that the SDK reads.
//
// It resumes a stream that was cut, by GET with Last-Event-ID, where the protocol
// version has resumption. The SDK would do so too, but it ends the session when
// resuming fails (go-sdk v1.8.0); so event ids are kept from it.
type streamGuard struct {
	transport *Transport
	post      *post
	src       io.ReadCloser
	events    *observe.EventReader

	lastID  string
	hasID   bool
	from    string // where it was last resumed
	wait    time.Duration
	resumed int
	asked   []serverRequest
	bytes   int64

	compressed bool // net/http undoes it

	out   [][]byte // what the SDK has still to read
	parts [3][]byte
	done  bool
	end   error // of the source, the last one
}

func (g *streamGuard) attach(src io.ReadCloser) {
	g.src = src
	g.events = observe.NewEventReader(&hearing{src, g.heard}, int(g.post.tool.MaxResult))
}

// heard counts what was read.
func (g *streamGuard) heard(n int) {
	g.bytes += int64(n)
	g.post.watch.heard(n)
}

// Read hands out rewritten events. It never returns an error of the source: the
// SDK would lose its type.
func (g *streamGuard) Read(b []byte) (int, error) {
	for len(g.out) == 0 {
		if g.done {
			return 0, io.EOF
		}
		g.next()
	}
	n := copy(b, g.out[0])
	if g.out[0] = g.out[0][n:]; len(g.out[0]) == 0 {
		g.out = g.out[1:]
	}
	return n, nil
}

// Close ends the POST. The source is drained a little first: closing at once
// costs the connection on HTTP/1.1.
func (g *streamGuard) Close() error {
	defer g.post.end()
	if !g.done {
		g.finish("canceled")
		return g.src.Close()
	}
	drain(g.src)
	return nil
}

// next reads one event, or the end.
func (g *streamGuard) next() {
	e, err := g.events.Next()
	if err != nil {
		g.ended(err)
		return
	}
	g.post.update(func(s *observe.Post) { s.Stream.Events++; s.Bytes = g.bytes })
	if e.Rewritten {
		g.post.deviate(observe.DeviationEventForm)
	}
	if e.HasID && canResumeAt(e.ID) {
		g.lastID, g.hasID = e.ID, e.ID != ""
	}
	if e.HasRetry {
		g.wait = e.Retry
	}
	if len(e.Data) > 0 && e.IsMessage() {
		g.message(e.Data)
	}
}

// message judges the data of an event.
func (g *streamGuard) message(data []byte) {
	q := g.post.question()
	kind, v := observe.ClassifyMessage(data, q, &g.post.tool.Reading)
	if kind != observe.KindRequest && kind != observe.KindNotification {
		g.terminal(data, v)
		return
	}
	for _, d := range v.Deviations {
		g.post.deviate(d)
	}
	if kind == observe.KindRequest {
		g.ask(data)
	} else if p := g.post.evidence.progress; p.isOf(data) {
		g.post.watch.progressed()
		if p.ours {
			return
		}
	}
	g.emit(data)
}

// terminal ends the stream with the answer, or with an error in its place.
func (g *streamGuard) terminal(data []byte, v observe.Verdict) {
	if kind := g.after(); kind != "" {
		g.post.deviate(kind)
	}
	g.post.update(func(s *observe.Post) { s.Stream.Terminal = v.Outcome.Answered() })
	g.post.weigh(&v, data)
	g.post.limitRounds(&v)
	g.closed("complete")
	g.post.conclude(v)
	if !v.Outcome.Answered() {
		g.post.excerpt(data)
		g.fail("complete")
		return
	}
	g.emit(g.post.rewritten(data, &v))
	g.finish("complete")
}

// after looks at what has already come behind the terminal response.
func (g *streamGuard) after() observe.Deviation {
	rest := bytes.TrimSpace(g.events.Buffered())
	if len(rest) == 0 {
		return ""
	}
	q := g.post.question()
	extra := observe.NewEventReader(bytes.NewReader(append(rest, "\n\n"...)), drainLimit)
	for {
		e, err := extra.Next()
		if err != nil {
			return observe.DeviationDataAfterResponse
		}
		if kind, _ := observe.ClassifyMessage(e.Data, q, nil); kind == observe.KindResponse {
			return observe.DeviationSecondResponse
		}
	}
}

// ended judges the end of the source without a terminal response.
func (g *streamGuard) ended(err error) {
	g.end = err
	switch {
	case errors.Is(err, observe.ErrEventTooLarge):
		g.closed("limit")
		g.post.conclude(tooLarge())
		g.fail("limit")
	case g.resumable():
		g.resume()
	default:
		g.incomplete(err)
	}
}

// incomplete ends the call because its stream did, or because that could not be resumed.
func (g *streamGuard) incomplete(err error) {
	how, reason := "ended", "the stream ended without a response"
	if !errors.Is(g.end, io.EOF) {
		how, reason = "cut", cutReason(g.compressed, "the stream was cut before the response")
	}
	if g.post.watch.ctx.Err() != nil {
		how = "canceled"
		if g.post.request.Context().Err() == nil {
			how = "limit"
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	g.closed(how)
	g.post.broken(observe.StreamIncomplete, reason, err, false)
	g.fail(how)
}

// fail puts an error event in the place of the response.
func (g *streamGuard) fail(how string) {
	g.emit(synthetic(g.post.envelope.id, g.post.err()))
	g.finish(how)
}

// finish ends the stream for the SDK.
func (g *streamGuard) finish(how string) {
	g.done = true
	g.forget()
	g.closed(how)
}

// closed notes how the stream ended. That comes before its verdict, for which the call
// may be waiting.
func (g *streamGuard) closed(how string) {
	g.post.update(func(s *observe.Post) {
		if s.Stream.Close == "" {
			s.Stream.Close = how
		}
	})
}

// emit queues one event. Its data is not copied: line ends, which in JSON stand
// only between tokens, become spaces so that one data line holds it.
func (g *streamGuard) emit(data []byte) {
	for rest := data; ; {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			break
		}
		rest[i] = ' '
		rest = rest[i+1:]
	}
	g.parts = [3][]byte{eventStart, data, eventEnd}
	g.out = g.parts[:]
}

var (
	eventStart = []byte("data: ")
	eventEnd   = []byte("\n\n")
)
