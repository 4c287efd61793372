package middleware

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/observe"
)

// roundKeys gives each round of a multi-round-trip call (MCP 2026-07-28) a key of
// its own. The SDK's loop runs below the middlewares and sends every round with the
// same _meta (go-sdk v1.8.0); a server or proxy that deduplicates naively would
// answer round two with its answer to round one. So from the second round on the
// key is exchanged in the body, and the call's key put beside it.
type roundKeys struct {
	meta   string // the key's name in _meta
	key    string // of the call, which is that of round one
	before int    // rounds answered by earlier attempts
	header func(key string) map[string]string
}

// round is the number of the round that the next POST of an attempt belongs to.
func (e *evidence) round() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return 1 + e.keys.before + answeredRounds(e.posts)
}

// maxRounds is how many questions one call may be answered with; the SDK's loop, which
// sees only a part of the call where a server puts it off or it is resumed, has the same
// bound (go-sdk v1.8.0).
const maxRounds = 10

// limitRounds ends a call whose questions do not end.
func (p *post) limitRounds(v *observe.Verdict) {
	if v.Outcome != observe.InputRequired || v.InputRequests == 0 || !p.evidence.attended {
		return
	}
	if p.evidence.questions()+1 >= maxRounds {
		v.Outcome, v.Delivery, v.Reason = observe.InvalidToolResult, observe.Unknown, "the rounds did not end"
	}
}

// questions is how many rounds of the call were answered with a question.
func (e *evidence) questions() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked + answeredRounds(e.posts)
}

// continues reports whether a POST is a further round of its attempt: one that
// follows an input_required answer.
func (e *evidence) continues(p *post) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(e.posts)
	return n > 1 && e.posts[n-1] == p && e.posts[n-2].seen.Verdict.Outcome == observe.InputRequired
}

func answeredRounds(posts []*post) int {
	n := 0
	for _, p := range posts {
		if asked(&p.seen) {
			n++
		}
	}
	return n
}

// asked reports whether a POST was answered with a question. A server that only puts
// the call off, which it does not do again the next time, asks nothing: the POST
// after that is the same round.
func asked(p *observe.Post) bool {
	return p.Verdict.Outcome == observe.InputRequired && p.Verdict.InputRequests > 0
}

// resumption is what a later round carries beside the call's own parameters.
type resumption struct {
	responses mcp.InputResponseMap
	state     string
}

// carried returns what a request carries beside the call's own parameters, or nil where
// it cannot be read.
func (p *post) carried() *resumption {
	body, err := p.body()
	if err != nil {
		return nil
	}
	defer body.Close()
	var msg struct {
		Params struct {
			InputResponses mcp.InputResponseMap `json:"inputResponses"`
			RequestState   string               `json:"requestState"`
		} `json:"params"`
	}
	if json.NewDecoder(body).Decode(&msg) != nil {
		return nil
	}
	return &resumption{msg.Params.InputResponses, msg.Params.RequestState}
}

// resumeRounds counts on where the caller goes on with a call whose question it has
// answered itself, as hosts do that have switched the SDK's loop off. answered is what
// the ledger remembers; where nobody does, one round at least is over.
func (cl *call) resumeRounds(answered int, known bool) {
	p := cl.params()
	switch {
	case p.RequestState == "" && len(p.InputResponses) == 0:
	case known:
		cl.rounds = answered
	default:
		cl.rounds = 1
	}
}

// dress gives the request that is sent the key of its round.
func (k *roundKeys) dress(out *http.Request, round int) error {
	key := idempotency.RoundKey(k.key, round)
	if k.header != nil {
		out.Header = withHeaders(out.Header, k.header(key))
	}
	if round <= 1 || k.key == "" {
		return nil
	}
	body, err := io.ReadAll(out.Body)
	out.Body.Close()
	if err != nil {
		return err
	}
	body = k.exchange(body, key)
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}

// params are the parameters of a request without HTTP, with the key of its round.
func (k *roundKeys) params(raw json.RawMessage, round int) json.RawMessage {
	if round <= 1 || k.key == "" {
		return raw
	}
	return k.exchange(raw, idempotency.RoundKey(k.key, round))
}

// exchange puts a round's key in the place of the call's. The SDK writes _meta before
// the arguments, so the first member of that name and value is the one.
func (k *roundKeys) exchange(body []byte, key string) []byte {
	call := member(k.meta, k.key)
	round := append(append(member(k.meta, key), ','), member(idempotency.MetaCallKey, k.key)...)
	return bytes.Replace(body, call, round, 1)
}

// member is a member of an object in the form that the SDK writes.
func member(name, value string) []byte {
	return append(append(jsonText(name), ':'), jsonText(value)...)
}

func jsonText(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
