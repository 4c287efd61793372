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

// once returns the stored answer for a key, or runs the tool and stores it. The
// answer is nil when ctx ends first. mismatch says that the key was used with
// other arguments; nothing runs then.
func (k *keyStore) once(ctx context.Context, tool, key string, arguments json.RawMessage, run func() json.RawMessage) (result json.RawMessage, replayed, mismatch bool) {
	args := canonical(arguments)
	e, first := k.claim(tool+"\x00"+key, args)
	if first {
		defer close(e.ready)
		e.result = run()
		return e.result, false, false
	}
	if !bytes.Equal(e.arguments, args) {
		return nil, false, true
	}
	select {
	case <-e.ready:
		return e.result, true, false
	case <-ctx.Done():
		return nil, false, false
	}
}

func (k *keyStore) claim(key string, args []byte) (e *keyed, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.done[key]; e != nil {
		return e, false
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
