package middlewaretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

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
