package middlewaretest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
)

// argumentKey is the argument in which a keyed tool takes its key.
const argumentKey = "idempotency_key"

// maxKeys bounds the keys that are remembered; beyond it calls with new keys are
// refused, for to forget one would break the promise of a keyed tool.
const maxKeys = 1_000_000

// A keyStore holds the answers of keyed tools: one execution for each tool and
// key, and the stored answer for every further call. A call that comes while
// the first one runs waits for it.
type keyStore struct {
	mu   sync.Mutex
	done map[string]*keyed
}

type keyed struct {
	arguments []byte // canonical, without the key
	ready     chan struct{}
	result    json.RawMessage // set before ready is closed; nil if the run was cut short
}

func newKeyStore() *keyStore { return &keyStore{done: map[string]*keyed{}} }

// ForgetAnswers makes the server forget the stored answers of keyed tools, so that a
// call with a known key runs again, and the streams that could be resumed: as one does
// whose stores have expired.
func (s *Server) ForgetAnswers() {
	s.keys.forget()
	s.replays.forget()
}

func (k *keyStore) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.done)
}

// once runs a keyed tool, or finds the answer that is stored for its key. The
// result is nil when ctx ends first.
func (k *keyStore) once(ctx context.Context, c Call, run func() json.RawMessage) *execution {
	args := canonical(c.Arguments)
	e, first := k.claim(c.Tool+"\x00"+c.Key, args)
	switch {
	case e == nil:
		return &execution{refusal: "the store of idempotency keys is full"}
	case first:
		defer close(e.ready)
		e.result = run()
		return &execution{result: e.result}
	case !bytes.Equal(e.arguments, args):
		return &execution{refusal: "the idempotency key was used with other arguments"}
	}
	select {
	case <-e.ready:
		return &execution{result: e.result, replayed: true}
	case <-ctx.Done():
		return &execution{}
	}
}

// claim returns the entry of a key, and whether it is new; nil if there is no
// room.
func (k *keyStore) claim(key string, args []byte) (e *keyed, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.done[key]; e != nil {
		return e, false
	}
	if len(k.done) >= maxKeys {
		return nil, false
	}
	e = &keyed{arguments: args, ready: make(chan struct{})}
	k.done[key] = e
	return e, true
}

// canonical renders arguments with sorted members and without the key, so that
// calls can be compared.
func canonical(arguments json.RawMessage) []byte {
	var all map[string]any
	if json.Unmarshal(arguments, &all) != nil {
		return arguments
	}
	delete(all, argumentKey)
	return mustJSON(all)
}

// headerKey reads Idempotency-Key: a string of structured fields (RFC 8941,
// section 3.3.3), or the bare text that most clients send.
func headerKey(h http.Header) string {
	v := h.Get("Idempotency-Key")
	if v == "" {
		v = h.Get("X-Idempotency-Key")
	}
	if len(v) >= 2 && v[0] == '"' && v[len(v)-1] == '"' {
		v = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(v[1 : len(v)-1])
	}
	return v
}
