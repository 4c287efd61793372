package middleware

import (
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// inflight knows the requests on one connection that wait for their answer. It is
// safe for concurrent use.
type inflight struct {
	mu      sync.Mutex
	waiting map[string]*pending // by id, as JSON
	issued  int64               // the highest id so far: the SDK counts upwards (go-sdk v1.8.0)
	version string              // of the protocol, once initialize was answered
	err     error               // the connection has ended
}

// A pending request is settled once: by its answer, by the end of its context or
// of a limit, or by the end of the connection. Whoever takes it off inflight does so.
type pending struct {
	post   *post
	id     jsonrpc.ID
	parcel *parcel
}

// add adds a request, unless the connection has ended.
func (f *inflight) add(p *pending) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	if f.waiting == nil {
		f.waiting = map[string]*pending{}
	}
	f.waiting[p.post.envelope.id] = p
	return nil
}

// issue notes that an id is in use from now on.
func (f *inflight) issue(id jsonrpc.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n, ok := id.Raw().(int64); ok {
		f.issued = max(f.issued, n)
	}
}

// take takes a request off and reports whether it still stood there.
func (f *inflight) take(p *pending) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := p.post.envelope.id
	if f.waiting[id] != p {
		return false
	}
	delete(f.waiting, id)
	return true
}

// find returns the request with an id, or nil.
func (f *inflight) find(id string) *pending {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.waiting[id]; p != nil {
		return p
	}
	if n, ok := integerID(id); ok {
		return f.waiting[strconv.FormatInt(n, 10)]
	}
	return nil
}

// wasIssued reports whether an id belongs, or belonged, to a request of ours: what
// comes under it is then the late answer to a call that was given up, and not one
// with a wrong id.
func (f *inflight) wasIssued(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, ok := integerID(id)
	return ok && n > 0 && n <= f.issued
}

// sole returns the only request that waits, or nil where there is none or several.
func (f *inflight) sole() *pending {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) != 1 {
		return nil
	}
	for _, p := range f.waiting {
		return p
	}
	return nil
}

// all returns the requests that wait.
func (f *inflight) all() []*pending {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]*pending, 0, len(f.waiting))
	for _, p := range f.waiting {
		all = append(all, p)
	}
	return all
}

// end lets nothing more be added.
func (f *inflight) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

// protocol returns the version that the session speaks, "" before initialize was
// answered; the versions that begin without it are the latest ones.
func (f *inflight) protocol() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.version
}

func (f *inflight) speak(version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version = version
}

// integerID reads an id that is an integer, in whatever form JSON allows (7.0).
func integerID(id string) (int64, bool) {
	x, err := strconv.ParseFloat(id, 64)
	n := int64(x)
	return n, err == nil && float64(n) == x
}
