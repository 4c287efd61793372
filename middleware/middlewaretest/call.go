package middlewaretest

import (
	"encoding/json"
	"net/http"
)

// An execution is what running a tool came to.
type execution struct {
	result   json.RawMessage // nil if the server closed meanwhile
	replayed bool            // the result is a stored one
	refusal  string          // why nothing ran
}

// call answers tools/call: with the fault whose turn it is, or honestly.
func (x *exchange) call() {
	if f := x.nextFault(); f != nil {
		x.strike(f)
		return
	}
	x.honest()
}

// nextFault takes the fault whose turn it is: one that waited for this round of
// the call, else a scripted one, else the scenario's.
func (x *exchange) nextFault() *Fault {
	if x.moved() {
		return nil
	}
	if f := x.s.scripts.release(x.p.RequestState); f != nil {
		return f
	}
	if len(x.p.InputResponses) > 0 {
		return nil
	}
	if f := x.s.scripts.call(x.p.Name); f != nil {
		return f
	}
	return x.stageFault()
}

// honest runs the tool, after asking the user where the tool says so, and
// answers with its result.
func (x *exchange) honest() {
	tool := x.tool()
	defer x.stageCalled()
	if tool.Ask != "" && !x.approved(&tool) {
		return
	}
	if tool.Streams || x.s.opts.Stream {
		x.openStream()
	}
	x.respond(x.execute().response(x.msg.ID))
}

// respond gives the terminal answer, on the stream if one is open.
func (x *exchange) respond(body []byte) {
	if x.stream == nil {
		x.json(http.StatusOK, body)
		return
	}
	x.stream.send(body)
	x.stream.finish()
}

// execute runs the tool, once for this exchange, and books the effect. It ends
// the exchange if the server closes meanwhile.
func (x *exchange) execute() *execution {
	if x.done != nil {
		return x.done
	}
	tool := x.tool()
	c := Call{Tool: tool.Name, Arguments: x.p.Arguments, Key: x.key(), Progress: x.progress}
	run := func() json.RawMessage {
		result := tool.run(x.s.life, c)
		if x.s.life.Err() != nil {
			return nil
		}
		x.s.ledger.executed(x.entry)
		return result.render(x.s.opts.stateless())
	}
	e := &execution{}
	if tool.Keyed && c.Key != "" {
		e = x.s.keys.once(x.s.life, c, run)
	} else {
		e.result = run()
	}
	if e.result == nil && e.refusal == "" {
		panic(http.ErrAbortHandler)
	}
	if e.replayed {
		x.s.ledger.update(func() { x.entry.Replayed = true })
	}
	x.done = e
	return e
}

// key is the idempotency key of the call.
func (x *exchange) key() string {
	e := Entry{Key: x.entry.Key, Header: x.entry.Header, Arguments: x.p.Arguments}
	return e.idempotencyKey()
}

// response renders the honest answer.
func (e *execution) response(id json.RawMessage) []byte {
	if e.refusal != "" {
		return errorResponse(id, codeInvalidParams, e.refusal, nil)
	}
	return response(id, e.result)
}

// progress sends a progress notification if the client gave a token and the
// answer is a stream.
func (x *exchange) progress(done, total int) {
	token := x.p.Meta["progressToken"]
	if len(token) == 0 || x.stream == nil {
		return
	}
	x.stream.send(notification("notifications/progress", mustJSON(map[string]any{
		"progressToken": token, "progress": done, "total": total,
	})))
}
