package middlewaretest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// maxKeptArguments bounds the arguments that an entry keeps.
const maxKeptArguments = 16 << 10

// keptHeaders are the request headers that an entry keeps, beside Mcp-Param-*.
var keptHeaders = []string{
	"Accept", "Authorization", "Content-Type", "Idempotency-Key", "X-Idempotency-Key", "Last-Event-Id",
	"Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Mcp-Session-Id", "Traceparent",
}

// An Entry is one HTTP request that the server received, whole.
type Entry struct {
	// Time is when the request had been read.
	Time time.Time `json:"time"`
	// HTTPMethod, Host and Path are those of the request; Host tells whether a
	// redirect to another origin was followed.
	HTTPMethod string `json:"httpMethod"`
	Host       string `json:"host"`
	Path       string `json:"path"`
	// Proto is "HTTP/1.1" or "HTTP/2.0".
	Proto string `json:"proto"`
	// Header holds some of the request's headers: session id, protocol version,
	// Mcp-*, idempotency keys, Last-Event-ID, Authorization.
	Header http.Header `json:"header,omitempty"`

	// Method is the JSON-RPC method; empty for a GET, a DELETE and a response.
	Method string `json:"method,omitempty"`
	// ID is the JSON-RPC id as it was written, or empty.
	ID string `json:"id,omitempty"`
	// Tool is the name in a tools/call.
	Tool string `json:"tool,omitempty"`
	// Arguments of a tools/call; nil if there are none or if they take more than
	// 16 KiB.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Key is the idempotency key in _meta.
	Key string `json:"key,omitempty"`
	// Meta is the request's _meta.
	Meta map[string]json.RawMessage `json:"meta,omitempty"`
	// Round is 1 for a call and counts on with each continuation that carries
	// the user's answers; 0 for other methods.
	Round int `json:"round,omitempty"`

	// Session is the session that the request belongs to, or empty.
	Session string `json:"session,omitempty"`
	// Fault is the name of the fault that struck, or empty.
	Fault string `json:"fault,omitempty"`
	// Executed says that the tool ran: an effect.
	Executed bool `json:"executed"`
	// Replayed says that a keyed tool answered from its store, without running.
	Replayed bool `json:"replayed,omitempty"`
	// Status is the HTTP status of the answer; 0 if none was sent.
	Status int `json:"status"`
}

// Counts are numbers of requests since the server started or the ledger was
// reset.
type Counts struct {
	Requests     int `json:"requests"`     // HTTP requests of any kind
	Posts        int `json:"posts"`        // POSTs
	Gets         int `json:"gets"`         // GETs: standalone streams and resumptions
	Deletes      int `json:"deletes"`      // DELETEs: sessions ended by clients
	Initializes  int `json:"initializes"`  // initialize
	Discovers    int `json:"discovers"`    // server/discover
	Lists        int `json:"lists"`        // tools/list
	Pings        int `json:"pings"`        // ping
	Cancelled    int `json:"cancelled"`    // notifications/cancelled
	Elicitations int `json:"elicitations"` // questions to the user that the server sent
	Forgotten    int `json:"forgotten"`    // entries that the ledger has dropped for want of room
}

// ToolCounts are the numbers of one tool.
type ToolCounts struct {
	Posts   int `json:"posts"`   // tools/call POSTs that arrived whole
	Effects int `json:"effects"` // executions
}

// A ledger holds what the server received and did. It is safe for concurrent
// use.
type ledger struct {
	mu      sync.Mutex
	max     int
	entries []*Entry // a ring once it is full; next is then the oldest
	next    int
	counts  Counts
	tools   map[string]ToolCounts
}

func newLedger(limit int) *ledger {
	return &ledger{max: limit, tools: map[string]ToolCounts{}}
}

// Posts returns the number of tools/call POSTs for tool that arrived whole.
func (s *Server) Posts(tool string) int {
	return locked(s.ledger, func() int { return s.ledger.tools[tool].Posts })
}

// Effects returns how often tool has run.
func (s *Server) Effects(tool string) int {
	return locked(s.ledger, func() int { return s.ledger.tools[tool].Effects })
}

// ByTool returns the numbers of every tool that was called.
func (s *Server) ByTool() map[string]ToolCounts {
	return locked(s.ledger, func() map[string]ToolCounts { return maps.Clone(s.ledger.tools) })
}

// Counts returns the numbers of requests by kind.
func (s *Server) Counts() Counts {
	return locked(s.ledger, func() Counts { return s.ledger.counts })
}

// Entries returns what the server received, oldest first: at most
// [Options.MaxEntries]. The entry of a request that is still being answered is
// there too, as far as it has come.
func (s *Server) Entries() []Entry {
	return locked(s.ledger, s.ledger.snapshot)
}

// EffectsByKey returns how often tool has run, by the idempotency key that it
// was called with ("" for none), within the entries that the ledger keeps.
func (s *Server) EffectsByKey(tool string) map[string]int {
	return s.EffectsBy(tool, func(e Entry) string { return e.idempotencyKey() })
}

// EffectsByArg returns how often tool has run, by the value of one argument:
// the text of a string, other values as they were written, "" where the argument
// is missing or was too long to be kept. It counts within the entries that the
// ledger keeps.
func (s *Server) EffectsByArg(tool, arg string) map[string]int {
	return s.EffectsBy(tool, func(e Entry) string { return argument(e.Arguments, arg) })
}

// EffectsBy returns how often tool has run, by what group makes of the entry of
// the call, within the entries that the ledger keeps.
func (s *Server) EffectsBy(tool string, group func(Entry) string) map[string]int {
	n := map[string]int{}
	for _, e := range s.Entries() {
		if e.Executed && e.Tool == tool {
			n[group(e)]++
		}
	}
	return n
}

// Reset forgets all entries and counts. Scripts, sessions and the stored answers
// of keyed tools stay.
func (s *Server) Reset() {
	l := s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries, l.next, l.counts = nil, 0, Counts{}
	clear(l.tools)
}

// add takes in a new entry and counts it.
func (l *ledger) add(e *Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count(e)
	if len(l.entries) < l.max {
		l.entries = append(l.entries, e)
		return
	}
	l.entries[l.next] = e
	l.next = (l.next + 1) % l.max
	l.counts.Forgotten++
}

// count books e under its kind. l.mu is held.
func (l *ledger) count(e *Entry) {
	c := &l.counts
	c.Requests++
	switch e.HTTPMethod {
	case http.MethodPost:
		c.Posts++
	case http.MethodGet:
		c.Gets++
	case http.MethodDelete:
		c.Deletes++
	}
	switch e.Method {
	case "initialize":
		c.Initializes++
	case "server/discover":
		c.Discovers++
	case "tools/list":
		c.Lists++
	case "ping":
		c.Pings++
	case "notifications/cancelled":
		c.Cancelled++
	case "tools/call":
		l.countTool(e.Tool, ToolCounts{Posts: 1})
	}
}

// update changes an entry.
func (l *ledger) update(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// executed books one run of the entry's tool.
func (l *ledger) executed(e *Entry) {
	l.update(func() {
		e.Executed = true
		l.countTool(e.Tool, ToolCounts{Effects: 1})
	})
}

// countTool adds to the numbers of a tool. Beyond as many tools as the ledger
// keeps entries, new names are not counted. l.mu is held.
func (l *ledger) countTool(name string, more ToolCounts) {
	n, known := l.tools[name]
	if known || len(l.tools) < l.max {
		l.tools[name] = ToolCounts{n.Posts + more.Posts, n.Effects + more.Effects}
	}
}

// elicited books one question to the user.
func (l *ledger) elicited() { l.update(func() { l.counts.Elicitations++ }) }

// snapshot copies the entries, oldest first. l.mu is held. Headers, arguments
// and _meta of an entry never change, so that they may be shared.
func (l *ledger) snapshot() []Entry {
	out := make([]Entry, 0, len(l.entries))
	for _, e := range slices.Concat(l.entries[l.next:], l.entries[:l.next]) {
		out = append(out, *e)
	}
	return out
}

func locked[T any](l *ledger, read func() T) T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return read()
}

// newEntry describes a request.
func newEntry(r *http.Request, now time.Time) *Entry {
	return &Entry{
		Time: now, HTTPMethod: r.Method, Host: r.Host, Path: r.URL.Path, Proto: r.Proto,
		Header: keepHeaders(r.Header),
	}
}

func keepHeaders(all http.Header) http.Header {
	kept := http.Header{}
	for _, name := range keptHeaders {
		if v := all[name]; v != nil {
			kept[name] = slices.Clone(v)
		}
	}
	for name, v := range all {
		if isParamHeader(name) {
			kept[name] = slices.Clone(v)
		}
	}
	return kept
}

// describe fills in what the message tells.
func (e *Entry) describe(m *message, p *params) {
	e.Method, e.ID = m.Method, string(m.ID)
	e.Meta = maps.Clone(p.Meta)
	if m.Method != "tools/call" {
		return
	}
	e.Tool, e.Key, e.Round = p.Name, p.metaString(metaKey), p.round()
	if len(p.Arguments) <= maxKeptArguments {
		e.Arguments = slices.Clone(p.Arguments)
	}
}

// idempotencyKey is the key in _meta, else in the header, else in the argument
// idempotency_key, else "".
func (e *Entry) idempotencyKey() string {
	if e.Key != "" {
		return e.Key
	}
	if k := headerKey(e.Header); k != "" {
		return k
	}
	return argument(e.Arguments, argumentKey)
}

// argument returns one member of arguments as text.
func argument(arguments json.RawMessage, name string) string {
	var all map[string]json.RawMessage
	if json.Unmarshal(arguments, &all) != nil {
		return ""
	}
	var text string
	if json.Unmarshal(all[name], &text) == nil {
		return text
	}
	return string(all[name])
}
