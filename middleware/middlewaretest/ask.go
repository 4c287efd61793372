package middlewaretest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
)

// The one question that tools ask, under this name in inputRequests.
const questionName = "approval"

// questions are those that were sent to clients and wait for an answer
// (2025-11-25: the answer comes by a POST of its own).
type questions struct {
	mu      sync.Mutex
	count   int
	waiting map[string]chan *message
}

func newQuestions() *questions { return &questions{waiting: map[string]chan *message{}} }

func (q *questions) open() (id string, answer chan *message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.count++
	id, answer = "ask-"+strconv.Itoa(q.count), make(chan *message, 1)
	q.waiting[id] = answer
	return id, answer
}

func (q *questions) drop(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.waiting, id)
}

// answer hands a client's response to the call that waits for it.
func (q *questions) answer(m *message) {
	var id string
	_ = json.Unmarshal(m.ID, &id)
	q.mu.Lock()
	defer q.mu.Unlock()
	if c := q.waiting[id]; c != nil {
		delete(q.waiting, id)
		c <- m
	}
}

// approved asks the user. Where it returns false, the call has been answered: by
// the question (2026-07-28), by the user's refusal, or by an error.
func (x *exchange) approved(tool *Tool) bool {
	if tool.AskField != "" && argument(x.p.Arguments, tool.AskField) != "" {
		return true
	}
	if !x.canAsk() {
		x.cannotAsk()
		return false
	}
	if x.s.opts.stateless() {
		return x.approvedByRound(tool)
	}
	return x.approvedByRequest(tool)
}

// canAsk reports whether the client announced elicitation.
func (x *exchange) canAsk() bool {
	raw := x.p.Meta[metaCapabilities]
	if !x.s.opts.stateless() {
		if x.session == nil {
			return false
		}
		raw = x.session.capabilities
	}
	var c struct {
		Elicitation json.RawMessage `json:"elicitation"`
	}
	_ = json.Unmarshal(orNull(raw), &c)
	return len(c.Elicitation) > 0 && string(c.Elicitation) != "null"
}

func (x *exchange) cannotAsk() {
	if x.s.opts.stateless() {
		data := json.RawMessage(`{"requiredCapabilities":{"elicitation":{}}}`)
		x.refuse(http.StatusBadRequest, codeMissingCapability, "the client does not support elicitation", data)
		return
	}
	x.respond(x.refusal(Result{Text: "the client does not support elicitation", IsError: true}))
}

// approvedByRound asks by an input_required result, and finds the answer in the
// next round of the call.
func (x *exchange) approvedByRound(tool *Tool) bool {
	answer, ok := x.p.InputResponses[questionName]
	if !ok {
		x.respondQuestion(x.question(tool, roundState("ask", x.p.round())))
		return false
	}
	return x.judge(tool, answer)
}

// respondQuestion answers with a question to the user.
func (x *exchange) respondQuestion(result json.RawMessage) {
	x.s.ledger.elicited()
	if x.s.opts.Stream {
		x.openStream()
	}
	x.respond(response(x.msg.ID, result))
}

// question renders an input_required result.
func (x *exchange) question(tool *Tool, state string) json.RawMessage {
	return mustJSON(map[string]any{
		"resultType":    "input_required",
		"requestState":  state,
		"inputRequests": map[string]any{questionName: map[string]any{"method": "elicitation/create", "params": tool.questionParams()}},
	})
}

// roundState is the opaque state of a round; the client sends it back with the
// next one.
func roundState(kind string, round int) string { return kind + ":" + strconv.Itoa(round) }

// approvedByRequest asks by a request on the stream of the answer, and waits for
// the client's response.
func (x *exchange) approvedByRequest(tool *Tool) bool {
	id, answer := x.s.asked.open()
	defer x.s.asked.drop(id)
	x.s.ledger.elicited()
	x.openStream().send(request(id, "elicitation/create", mustJSON(tool.questionParams())))
	select {
	case m := <-answer:
		return x.judge(tool, m.Result)
	case <-x.ctx.Done():
		panic(http.ErrAbortHandler)
	}
}

// judge reports whether the user accepted, and answers the call if not.
func (x *exchange) judge(tool *Tool, answer json.RawMessage) bool {
	if tool.accepts(answer) {
		return true
	}
	x.respond(x.refusal(Result{Text: "the user did not approve", IsError: !tool.RefusalIsFine}))
	return false
}

// accepts reports whether an answer is a yes, or has the text that was asked for.
func (t *Tool) accepts(answer json.RawMessage) bool {
	var a struct {
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content"`
	}
	_ = json.Unmarshal(orNull(answer), &a)
	if a.Action != "accept" {
		return false
	}
	if t.AskField != "" {
		return argument(a.Content, t.AskField) != ""
	}
	return argument(a.Content, "approve") != "false"
}

func (x *exchange) refusal(r Result) []byte {
	return response(x.msg.ID, r.render(x.s.opts.stateless()))
}

// questionParams are those of elicitation/create.
func (t *Tool) questionParams() map[string]any {
	message := t.Ask
	if message == "" {
		message = "Go on?"
	}
	if t.AskURL != "" {
		return map[string]any{"mode": "url", "message": message, "url": t.AskURL, "elicitationId": "e-" + t.Name}
	}
	field := `"approve":{"type":"boolean","title":"Approve","default":true}},"required":["approve"]`
	if t.AskField != "" {
		field = quote(t.AskField) + `:{"type":"string"}},"required":[` + quote(t.AskField) + `]`
	}
	return map[string]any{"mode": "form", "message": message,
		"requestedSchema": json.RawMessage(`{"type":"object","properties":{` + field + `}`)}
}
