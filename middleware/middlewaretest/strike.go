package middlewaretest

import (
	"bytes"
	"encoding/json"
	"fmt"
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

// fill replaces the words of a template.
func (x *exchange) fill(f *Fault, template string) []byte {
	var b bytes.Buffer
	for {
		before, rest, found := strings.Cut(template, "%")
		b.WriteString(before)
		if !found {
			return b.Bytes()
		}
		word, after, found := strings.Cut(rest, "%")
		if value, known := x.word(f, word); found && known {
			b.Write(value)
			template = after
			continue
		}
		b.WriteByte('%')
		template = rest
	}
}

// word returns what stands for a word of a template.
func (x *exchange) word(f *Fault, word string) (value []byte, known bool) {
	id := orNull(x.msg.ID)
	switch word {
	case "id":
		return id, true
	case "nextid":
		return nextID(id), true
	case "halfid":
		return join(string(id), ".5"), true
	case "textid":
		return mustJSON(string(id)), true
	case "result":
		return x.made(), true
	case "response":
		return x.madeResponse(), true
	case "question":
		tool := x.tool()
		return x.question(&tool, x.nextState(f)), true
	case "state":
		return []byte(x.nextState(f)), true
	case "token":
		return orNull(x.p.Meta["progressToken"]), true
	case "stream":
		return []byte(x.cutStream(f)), true
	case "fill":
		return bytes.Repeat([]byte{'x'}, min(max(f.Size, 0), maxBig)), true
	case "here":
		return []byte(x.here(x.r.Host)), true
	case "elsewhere":
		return []byte(x.here(strings.Replace(x.r.Host, "127.0.0.1", "localhost", 1))), true
	}
	return nil, false
}

// nextID returns a number that is not the id.
func nextID(id json.RawMessage) []byte {
	n, err := strconv.Atoi(string(id))
	if err != nil {
		n = 6
	}
	return strconv.AppendInt(nil, int64(n)+1, 10)
}

// made returns the tool's result, or one that is made up if the tool has not
// run.
func (x *exchange) made() json.RawMessage {
	if x.done != nil && x.done.result != nil {
		return x.done.result
	}
	if x.msg.Method != "tools/call" {
		return x.complete(map[string]any{})
	}
	return Result{Text: "made up"}.render(x.s.opts.stateless())
}

func (x *exchange) madeResponse() []byte { return response(x.msg.ID, x.made()) }

// nextState is the state of the next round; under EveryRound, one that brings the
// fault back.
func (x *exchange) nextState(f *Fault) string {
	if f.EveryRound {
		return x.s.scripts.hold(*f, x.p.round())
	}
	return roundState("ask", x.p.round())
}

// cutStream names a stream that a fault sends event 0 of; its event 1, the
// response, is what resuming delivers.
func (x *exchange) cutStream(f *Fault) string {
	id, r := x.s.replays.open(!x.s.opts.stateless())
	if r != nil {
		r.resumption = f.Resume
		r.add(nil)
		r.add(x.madeResponse())
		r.finish()
	}
	return id
}

// here is the URL of the request under a host.
func (x *exchange) here(host string) string {
	scheme := "http"
	if x.r.TLS != nil || x.s.opts.HTTP2 {
		scheme = "https"
	}
	return fmt.Sprintf("%s://%s%s", scheme, host, x.r.URL.Path)
}
