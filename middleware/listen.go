package middleware

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/surecall/surecall/observe"
)

const (
	// listenWait bounds how long the SDK is kept waiting for the server's own stream. It
	// opens that within Connect, but not within Connect's context (go-sdk v1.8.0), and
	// servers there are that send no headers before there is an event.
	listenWait = 500 * time.Millisecond
	// listenWaitMax bounds the wait before the server's own stream is opened again.
	listenWaitMax = 30 * time.Second
)

// isListening reports whether a request opens the server's own stream (MCP 2025-11-25
// and earlier, "listening for messages from the server").
func isListening(req *http.Request) bool {
	version := req.Header.Get(headerProtocolVersion)
	return req.Method == http.MethodGet && req.Header.Get("Accept") == "text/event-stream" &&
		version != "" && version < sessionlessVersion
}

// A listener is the server's own stream as the SDK sees it: one that does not end
// before the session does. Below it the stream is opened again whenever it ends,
// resumed where the server numbers its events, and opened under the new id when the
// session was renewed. A server that is away, refuses the stream or writes what is no
// message does not end the session.
//
// The SDK does the first by itself, but counts: the sixth time without event ids ends
// the session, however long it lived (go-sdk v1.8.0), and so does a refusal. No limit
// of the policy applies to this stream.
//
// It works in Read, on the goroutine of its reader.
type listener struct {
	transport *Transport
	session   *httpSession // nil where the server has none
	request   *http.Request
	limit     int             // of an event, in bytes
	ctx       context.Context // ends with the request, or by Close
	end       context.CancelFunc

	first  chan tried // the first try; nil once it is over
	lease  lease
	events *observe.EventReader // nil while there is no stream
	stop   func()               // ends the stream, or the try to get one
	opened time.Time

	lastID string
	retry  time.Duration // the server's, or 0
	wait   time.Duration // before the next try
	out    []byte        // what the SDK has still to read
}

// listen opens the server's own stream. Where the server has none, that is the answer;
// where it only fails to give one, it is tried again below the SDK.
func (t *Transport) listen(req *http.Request) (*http.Response, error) {
	l := &listener{transport: t, session: t.session(req), request: req, lastID: req.Header.Get(headerLastEventID)}
	server := observe.RedactURL(askedURL(req))
	if l.session != nil {
		server = l.session.server
	}
	l.limit = int(t.core.rules.Load().Reads(server).MaxResult)
	l.ctx, l.end = context.WithCancel(req.Context())
	l.first = make(chan tried)
	go l.try()
	late := time.NewTimer(listenWait)
	defer late.Stop()
	select {
	case r := <-l.first:
		if l.begin(r) {
			break
		}
		// The SDK knows what to make of it.
		l.session.show(r.resp, l.lease)
		correctSession(req, r.resp, false)
		r.resp.Body = &lastBody{r.resp.Body, l}
		return r.resp, nil
	case <-late.C:
	case <-l.ctx.Done():
		return nil, req.Context().Err()
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"text/event-stream"}},
		Body:          l,
		ContentLength: -1,
		Request:       req,
	}, nil
}

// tried is what a try to open the stream came to.
type tried struct {
	resp *http.Response
	err  error
}

// try opens the stream for the first time, for whoever still waits for it.
func (l *listener) try() {
	resp, err := l.open()
	select {
	case l.first <- tried{resp, err}:
	case <-l.ctx.Done():
		if discard(resp); err == nil {
			l.stop()
		}
	}
}

// begin takes the first try, and reports false if the answer is no stream and will not
// pass by itself.
func (l *listener) begin(r tried) bool {
	l.first = nil
	switch {
	case r.err != nil:
	case isStream(r.resp):
		l.attach(r.resp)
	case passing(r.resp.StatusCode):
		discard(r.resp)
		l.stop()
	default:
		return false
	}
	return true
}

// await waits for a first try that takes its time. Nobody tells the SDK any more that
// the server has no stream, so that the listener keeps quiet itself.
func (l *listener) await() {
	select {
	case r := <-l.first:
		if l.begin(r) {
			return
		}
		discard(r.resp)
		l.stop()
		if r.resp.StatusCode == http.StatusMethodNotAllowed {
			<-l.ctx.Done()
		}
	case <-l.ctx.Done():
	}
}

// passing reports whether a status may pass by itself.
func passing(status int) bool {
	return status >= http.StatusInternalServerError || status == http.StatusTooManyRequests
}

func isStream(resp *http.Response) bool {
	return resp.StatusCode == http.StatusOK && mediaType(resp.Header) == "text/event-stream" && !coded(resp.Header)
}

// open asks for the stream, once more if the session had to be renewed for that.
func (l *listener) open() (*http.Response, error) {
	for again := false; ; again = true {
		resp, err := l.get()
		if err != nil || resp.StatusCode != http.StatusNotFound || l.session == nil || again {
			return resp, err
		}
		if l.session.examine(l.ctx, l.asked(), l.lease, true) != renewed {
			return resp, nil
		}
		discard(resp)
		l.stop()
	}
}

// asked is the request with the credential that the session uses by now.
func (l *listener) asked() *http.Request {
	req := l.request.Clone(l.ctx)
	if c := l.session.credentials(); c != "" {
		req.Header.Set("Authorization", c)
	}
	return req
}

// get asks for the stream under the current id.
func (l *listener) get() (*http.Response, error) {
	req := l.asked()
	now, _, err := l.session.pass(l.ctx, req)
	if err != nil {
		now = l.session.current()
	}
	if now.generation != l.lease.generation {
		l.lastID, l.wait = "", 0 // an event, and a history, of another session
	}
	l.lease = now
	if err != nil {
		return nil, err
	}
	req.Header.Del(headerLastEventID)
	if l.lastID != "" {
		req.Header.Set(headerLastEventID, l.lastID)
	}
	ctx, cancel := context.WithCancel(l.ctx)
	l.stop = cancel
	if now.over != nil {
		unwatch := context.AfterFunc(now.over, cancel)
		l.stop = func() { unwatch(); cancel() }
	}
	resp, err := l.transport.follow(l.session.under(req.WithContext(ctx), now))
	if err == nil && resp == nil {
		err = errNoResponse
	}
	if err == nil && resp.Body == nil {
		resp.Body = http.NoBody
	}
	if err != nil {
		l.stop()
	}
	return resp, err
}

func (l *listener) attach(resp *http.Response) {
	l.session.serve(l.lease)
	l.opened, l.events = time.Now(), observe.NewEventReader(resp.Body, l.limit)
	cancel := l.stop
	l.stop = func() { cancel(); resp.Body.Close() }
}

// Read hands out the messages of the stream, and opens it again when it ends.
func (l *listener) Read(b []byte) (int, error) {
	for len(l.out) == 0 {
		if err := l.request.Context().Err(); err != nil {
			return 0, err
		}
		if l.ctx.Err() != nil {
			return 0, http.ErrBodyReadAfterClose
		}
		switch {
		case l.first != nil:
			l.await()
			continue
		case l.events == nil:
			l.reopen()
			continue
		}
		l.next()
	}
	n := copy(b, l.out)
	l.out = l.out[n:]
	return n, nil
}

// next reads one event, or the end.
func (l *listener) next() {
	e, err := l.events.Next()
	if err != nil {
		l.detach()
		return
	}
	if e.HasID && canResumeAt(e.ID) {
		l.lastID = e.ID
	}
	if e.HasRetry {
		l.retry = min(max(e.Retry, resumeWaitMin), resumeWaitMax)
	}
	if len(e.Data) == 0 || !e.IsMessage() {
		return
	}
	if _, err := jsonrpc.DecodeMessage(e.Data); err != nil || !l.bearable(e.Data) {
		return // it would end the session, or the program
	}
	// Line ends stand only between tokens; and ids are for us, not for the SDK.
	data := bytes.ReplaceAll(e.Data, []byte("\n"), []byte(" "))
	l.out = append(append(append(l.out[:0], eventStart...), data...), eventEnd...)
}

// bearable reports whether a message can be given to the SDK: a request has to be one
// that it can answer.
func (l *listener) bearable(data []byte) bool {
	if kind, _, _, ok := observe.Envelope(data); !ok || kind != observe.KindRequest {
		return true
	}
	q := observe.Answer{ProtocolVersion: l.request.Header.Get(headerProtocolVersion)}
	kind, _ := observe.ClassifyMessage(data, q, nil)
	return kind == observe.KindRequest
}

// detach lets go of a stream that has ended. One that lived begins the waits anew.
func (l *listener) detach() {
	l.stop()
	l.events = nil
	if time.Since(l.opened) > l.wait {
		l.wait = 0
	}
}

// reopen waits, and tries once.
func (l *listener) reopen() {
	if l.rest(); l.ctx.Err() != nil {
		return
	}
	resp, err := l.open()
	if err == nil && isStream(resp) {
		l.attach(resp)
		return
	}
	discard(resp)
	if err == nil {
		l.lastID = "" // perhaps what was refused is the resumption
		l.stop()
	}
}

// rest waits before the next try. The renewal of the session ends the wait.
func (l *listener) rest() {
	if l.session.ended() {
		<-l.ctx.Done()
		return
	}
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	if l.lease.over != nil {
		defer context.AfterFunc(l.lease.over, cancel)()
	}
	sleep(ctx, l.pause())
}

// pause is the wait before the next try. It doubles with each.
func (l *listener) pause() time.Duration {
	first := resumeWait
	if l.retry > 0 {
		first = l.retry
	}
	l.wait = min(max(2*l.wait, first), max(listenWaitMax, first))
	return time.Duration((1 + l.transport.core.opts.Rand()) / 2 * float64(l.wait))
}

// Close ends the stream, through the context that all its connections have. It may be
// called while Read runs.
func (l *listener) Close() error {
	l.end()
	return nil
}

// lastBody is the body of an answer after which there is no stream.
type lastBody struct {
	io.ReadCloser
	listener *listener
}

func (b *lastBody) Close() error {
	defer b.listener.end()
	return b.ReadCloser.Close()
}

// discard closes a response that may be nil.
func discard(resp *http.Response) {
	if resp != nil && resp.Body != nil {
		drain(resp.Body)
	}
}
