package middlewaretest

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// strike answers a call by a fault.
func (x *exchange) strike(f *Fault) {
	if round := x.p.round(); round < f.Round {
		tool := x.tool()
		x.respondQuestion(x.question(&tool, x.s.scripts.hold(*f, round)))
		return
	}
	x.s.ledger.update(func() { x.entry.Fault = f.Name })
	isCall := x.msg.Method == "tools/call"
	switch {
	case f.honest():
	case f.Execute == Before && isCall:
		x.execute()
	case f.Execute == After && isCall:
		defer x.execute()
	}
	if f.ForgetSessions {
		x.s.ForgetSessions()
	}
	x.pause(f.Delay)
	x.emit(f, x.honest)
}

// strikeMethod answers any other request by a fault.
func (x *exchange) strikeMethod(f *Fault) {
	if x.msg.Method == "tools/call" {
		x.strike(f)
		return
	}
	x.s.ledger.update(func() { x.entry.Fault = f.Name })
	if f.ForgetSessions {
		x.s.ForgetSessions()
	}
	x.pause(f.Delay)
	honest := x.dispatch
	if x.r.Method != http.MethodPost {
		honest = x.dispatchOther
	}
	x.emit(f, honest)
}

// pause waits, and ends the exchange if the client or the server does not wait
// as long.
func (x *exchange) pause(d time.Duration) {
	wait(x.ctx, d)
	if d > 0 && x.ctx.Err() != nil {
		panic(http.ErrAbortHandler)
	}
}

// emit puts a fault on the wire.
func (x *exchange) emit(f *Fault, honest func()) {
	if f.EarlyHints {
		x.w.WriteHeader(http.StatusEarlyHints)
	}
	if f.honest() {
		x.setHeaders(f)
		honest()
		return
	}
	if f.Status != 0 {
		x.emitAnswer(f)
	}
	x.finish(f.Ending)
}

func (x *exchange) emitAnswer(f *Fault) {
	body := x.fill(f, f.Body)
	if f.encode != nil {
		body = f.encode(body)
	}
	h := x.w.Header()
	if len(body) > 0 {
		h.Set("Content-Type", "application/json")
	}
	x.setHeaders(f)
	stream := strings.HasPrefix(h.Get("Content-Type"), "text/event-stream")
	switch {
	case f.Missing > 0 || f.Whole:
		h.Set("Content-Length", strconv.Itoa(len(body)+f.Missing))
	case !stream && !f.Chunked && f.Repeat == 0 && f.Ending == EndComplete && f.Status != http.StatusNoContent:
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	x.begin(f.Status)
	x.send(body, f.Pace)
	for f.Repeat > 0 {
		x.pause(f.Repeat)
		x.send(body, f.Pace)
	}
}

// pieceSize is the number of bytes that are sent at once under [Fault.Pace].
const pieceSize = 16

func (x *exchange) send(body []byte, pace time.Duration) {
	for pace > 0 && len(body) > pieceSize {
		_, _ = x.w.Write(body[:pieceSize])
		x.flush()
		body = body[pieceSize:]
		x.pause(pace)
	}
	_, _ = x.w.Write(body)
	x.flush()
}

// setHeaders applies the fault's headers.
func (x *exchange) setHeaders(f *Fault) {
	h := x.w.Header()
	for name, values := range f.Header {
		if values == nil {
			h[name] = nil // keeps net/http from adding its own
			continue
		}
		h.Del(name)
		for _, v := range values {
			h.Add(name, string(x.fill(f, v)))
		}
	}
	if f.RetryAfter > 0 {
		h.Set("Retry-After", f.retryAfter(now()))
	}
	if f.ChangeSession {
		h.Set("Mcp-Session-Id", "changed-"+x.r.Header.Get("Mcp-Session-Id"))
	}
}

// retryAfter renders Retry-After (RFC 9110, section 10.2.3). A date has whole
// seconds and must not shorten the wait.
func (f *Fault) retryAfter(now time.Time) string {
	if f.RetryDate {
		return now.Add(f.RetryAfter).Add(time.Second - 1).UTC().Format(http.TimeFormat)
	}
	return strconv.Itoa(int(math.Ceil(f.RetryAfter.Seconds())))
}
