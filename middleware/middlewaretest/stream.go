package middlewaretest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

const (
	maxReplays      = 1000   // streams that can be resumed
	maxReplayEvents = 10_000 // events kept of one stream
)

// An eventStream is an answer of type text/event-stream. Its methods may be
// called by several goroutines.
type eventStream struct {
	mu     sync.Mutex
	x      *exchange
	id     string  // of the stream; empty if its events carry no ids
	replay *replay // nil if the stream cannot be resumed
	events int
}

// openStream begins a streamed answer, unless it has begun.
func (x *exchange) openStream() *eventStream {
	if x.stream != nil {
		return x.stream
	}
	x.stream = &eventStream{x: x}
	if x.s.opts.EventIDs && x.r.Method == http.MethodPost {
		x.stream.id, x.stream.replay = x.s.replays.open(!x.s.opts.stateless())
	}
	x.beginStream()
	if x.stream.id != "" {
		x.stream.send(nil) // an event without data, so that even a cut before the first message can be resumed
	}
	return x.stream
}

func (x *exchange) beginStream() {
	x.w.Header().Set("Content-Type", "text/event-stream")
	x.w.Header().Set("Cache-Control", "no-cache")
	x.begin(http.StatusOK)
	x.flush()
}

// send writes one message as an event. What the client does not get, because it
// has gone, it may resume.
func (st *eventStream) send(data []byte) {
	st.mu.Lock()
	defer st.mu.Unlock()
	var id string
	if st.id != "" {
		id = eventID(st.id, st.events)
	}
	st.events++
	if st.replay != nil {
		st.replay.add(data)
	}
	st.x.sendEvent(id, data)
}

func (x *exchange) sendEvent(id string, data []byte) {
	_, _ = x.w.Write(event(id, data))
	x.flush()
}

// finish says that the stream is complete: nothing is left to be resumed beyond
// what was sent.
func (st *eventStream) finish() {
	if st.replay != nil {
		st.replay.finish()
	}
}

// event renders an event; id may be empty.
func event(id string, data []byte) []byte {
	var b bytes.Buffer
	if id != "" {
		fmt.Fprintf(&b, "id: %s\n", id)
	}
	b.WriteString("data: ")
	b.Write(data)
	b.WriteString("\n\n")
	return b.Bytes()
}

func eventID(stream string, n int) string { return stream + "_" + strconv.Itoa(n) }

// parseEventID returns the stream and the number of the event after id.
func parseEventID(id string) (stream string, next int, ok bool) {
	stream, number, ok := strings.Cut(id, "_")
	n, err := strconv.Atoi(number)
	return stream, n + 1, ok && err == nil && n >= 0
}

// A replay keeps the events of one stream for those who resume it.
type replay struct {
	resumption Resumption
	mu         sync.Mutex
	events     [][]byte
	complete   bool
	changed    chan struct{} // closed and replaced at each change
}

func (r *replay) add(data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) < maxReplayEvents {
		r.events = append(r.events, data)
		r.wake()
	}
}

func (r *replay) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complete = true
	r.wake()
}

func (r *replay) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// from returns the events from number n on, whether the stream is complete, and
// what to wait for if it is not.
func (r *replay) from(n int) (events [][]byte, complete bool, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = min(n, len(r.events))
	return r.events[n:len(r.events):len(r.events)], r.complete, r.changed
}

// replays are the streams that can be resumed.
type replays struct {
	mu    sync.Mutex
	known map[string]*replay
	order []string
	count int
}

func newReplays() *replays { return &replays{known: map[string]*replay{}} }

// open names a new stream, and keeps it if it is to be resumable.
func (a *replays) open(resumable bool) (string, *replay) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count++
	id := "s" + strconv.Itoa(a.count)
	if !resumable {
		return id, nil
	}
	if len(a.order) >= maxReplays {
		delete(a.known, a.order[0])
		a.order = a.order[1:]
	}
	r := &replay{changed: make(chan struct{})}
	a.known[id] = r
	a.order = append(a.order, id)
	return id, r
}

func (a *replays) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.known)
	a.order = nil
}

func (a *replays) get(id string) *replay {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known[id]
}

// resume answers a GET with Last-Event-ID.
func (x *exchange) resume() {
	if !x.joinSession() {
		return
	}
	stream, next, ok := parseEventID(x.r.Header.Get("Last-Event-Id"))
	r := x.s.replays.get(stream)
	if !ok || r == nil {
		x.text(http.StatusBadRequest, "unknown Last-Event-ID")
		return
	}
	switch r.resumption {
	case ResumeDelivers:
		x.resumeFrom(x.ctx, r, stream, next)
	case ResumeNotAllowed:
		x.notAllowed()
	case ResumeNotFound:
		x.text(http.StatusNotFound, "no such stream")
	case ResumeNothing:
		x.beginStream()
	case ResumeSilent:
		x.beginStream()
		x.hang()
	}
}

// resumeFrom sends what the stream has had since, and what it still gets.
func (x *exchange) resumeFrom(ctx context.Context, r *replay, stream string, next int) {
	x.beginStream()
	for {
		events, complete, changed := r.from(next)
		for _, data := range events {
			x.sendEvent(eventID(stream, next), data)
			next++
		}
		if complete {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
