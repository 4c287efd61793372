package middleware

import (
	"cmp"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// read takes the server's output line by line, until it ends.
func (c *connection) read(lines *lineReader) {
	for {
		l, err := lines.next()
		if !l.isBlank() {
			if m := c.message(&l); m != nil {
				c.deliver(m)
			}
		}
		if err != nil {
			c.end(err)
			return
		}
	}
}

// message makes of a line what the SDK is to see: the message; an error in the place
// of an answer that cannot be used; or nothing. Which call a broken answer belongs to
// is told by its id, and where it has none that helps, by there being one call alone.
func (c *connection) message(l *line) jsonrpc.Message {
	asked, id := c.addressed(l)
	named := asked != nil
	if !named {
		asked = c.calls.sole()
	}
	kind, v := c.classify(l, asked)
	if asked == nil && v.ID != "" {
		if asked = c.calls.find(v.ID); asked != nil {
			kind, v = c.classify(l, asked)
		}
	}
	switch {
	case kind == observe.KindRequest, kind == observe.KindNotification:
		return c.pass(l, v)
	case l.cut && !v.Outcome.Answered():
		return nil // the end of the connection says more
	case !v.Outcome.Answered() && !l.isMessage(v.EchoedID):
		c.note(observe.DeviationStrayLine)
		return nil
	case named, v.EchoedID:
		return c.answer(asked, v, l)
	case c.calls.wasIssued(cmp.Or(v.ID, id)):
		return nil // the late answer to a call that was given up
	case asked != nil:
		return c.answer(asked, v, l)
	}
	c.note(observe.DeviationUnclaimed)
	return nil
}

// addressed returns the request that a line answers by its id, or nil, with the id.
func (c *connection) addressed(l *line) (*pending, string) {
	kind, id, _, ok := observe.Envelope(l.data)
	if !ok || kind != observe.KindResponse {
		return nil, "" // the ids of the server's own requests are others
	}
	return c.calls.find(id), id
}

// classify judges a line as the answer to a request; asked may be nil.
func (c *connection) classify(l *line, asked *pending) (observe.MessageKind, observe.Verdict) {
	switch {
	case l.tooLong:
		return observe.KindInvalid, tooLarge()
	case asked == nil:
		return observe.ClassifyMessage(l.data, observe.Answer{ProtocolVersion: c.calls.protocol(), Method: "none"}, nil)
	}
	tool := asked.post.tool
	kind, v := observe.ClassifyMessage(l.data, asked.post.question(), &tool.Reading)
	if limit := tool.MaxResult; v.EchoedID && limit > 0 && int64(len(l.data)) > limit {
		v = tooLarge()
		v.EchoedID = true
	}
	return kind, v
}

// pass hands on a request or a notification of the server's.
func (c *connection) pass(l *line, v observe.Verdict) jsonrpc.Message {
	c.note(v.Deviations...)
	if c.progressed(l.data) {
		return nil
	}
	m, err := jsonrpc.DecodeMessage(l.data)
	if err != nil {
		c.note(observe.DeviationUnclaimed)
		return nil
	}
	c.ask(m)
	return m
}

// progressed begins the limit of a request anew that a notification tells of, and
// reports whether nobody above has asked for it.
func (c *connection) progressed(data []byte) (ours bool) {
	for _, p := range c.calls.all() {
		if of := p.post.evidence.progress; of.isOf(data) {
			p.post.watch.progressed()
			return of.ours
		}
	}
	return false
}

// answer settles a request by a line and returns what the SDK gets.
func (c *connection) answer(p *pending, v observe.Verdict, l *line) jsonrpc.Message {
	if !c.calls.take(p) {
		return nil
	}
	p.post.update(func(s *observe.Post) { s.Bytes = int64(len(l.data)) })
	p.post.limitRounds(&v)
	p.post.conclude(v)
	if !v.Outcome.Answered() {
		p.post.excerpt(l.data)
	}
	p.post.end()
	switch {
	case p.post.putOff(&v):
		return &jsonrpc.Response{ID: p.id, Result: withoutRequests(v.Result)}
	case v.Outcome.Usable():
		c.learnVersion(p, v.Result)
		return &jsonrpc.Response{ID: p.id, Result: v.Result}
	case v.Outcome == observe.JSONRPCError:
		return &jsonrpc.Response{ID: p.id, Error: &jsonrpc.Error{Code: v.Error.Code, Message: v.Error.Message, Data: v.Error.Data}}
	}
	return &jsonrpc.Response{ID: p.id, Error: p.post.err()}
}

// learnVersion keeps the version that initialize settled on.
func (c *connection) learnVersion(p *pending, result []byte) {
	if p.post.envelope.method != "initialize" {
		return
	}
	var init struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if json.Unmarshal(result, &init) == nil {
		c.calls.speak(init.ProtocolVersion)
	}
}

// note notes deviations with every call that is under way: nothing says which of them
// they concern.
func (c *connection) note(deviations ...observe.Deviation) {
	if len(deviations) == 0 {
		return
	}
	for _, p := range c.calls.all() {
		for _, d := range deviations {
			p.post.deviate(d)
		}
	}
}

// maxLine is how long a line may be that begins so: as long as the answer to the call
// whose id it carries, or else as the largest answer that is awaited.
func (c *connection) maxLine(beginning []byte) int64 {
	if asked, _ := c.addressed(&line{data: beginning}); asked != nil {
		return asked.post.tool.MaxResult
	}
	limit := idleLine
	for _, p := range c.calls.all() {
		if p.post.tool.MaxResult <= 0 {
			return 0
		}
		limit = max(limit, p.post.tool.MaxResult)
	}
	return limit
}

// idleLine is how long a line may be in any case.
var idleLine = policy.Defaults().MaxResult
