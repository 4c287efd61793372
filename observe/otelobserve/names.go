package otelobserve

import (
	"sync"

	"github.com/surecall/surecall/observe"
)

// names are the values that a label may have: the first ones, up to a limit. It is
// safe for concurrent use.
type names[K comparable] struct {
	limit int

	mu    sync.RWMutex
	known map[K]bool
}

func newNames[K comparable](limit int) *names[K] {
	return &names[K]{limit: limit, known: map[K]bool{}}
}

// has reports whether a name is one of them.
func (n *names[K]) has(name K) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.known[name]
}

// admit reports whether a name is one of them, taking it in while there is room.
func (n *names[K]) admit(name K) bool {
	if n.has(name) {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) < n.limit {
		n.known[name] = true
	}
	return n.known[name]
}

// labels keep the values of labels few. Names come from models and servers, and there
// may be no end of them: those beyond a limit share the name "_OTHER".
type labels struct {
	servers *names[string]
	tools   *names[target]
	spans   *names[target] // that names of spans tell apart
	codes   *names[string]
}

type target struct{ server, tool string }

// maxCodes is how many JSON-RPC codes labels tell apart; a server may send any.
const maxCodes = 32

func newLabels(o *Options) *labels {
	return &labels{
		servers: newNames[string](o.MaxServers),
		tools:   newNames[target](o.MaxTools),
		spans:   newNames[target](o.MaxTools),
		codes:   newNames[string](maxCodes),
	}
}

func (l *labels) spanName(server, tool string) string {
	if l.spans.admit(target{server, tool}) {
		return methodCallTool + " " + clip(tool)
	}
	return methodCallTool
}

func (l *labels) server(name string) string {
	if l.servers.admit(name) {
		return name
	}
	return other
}

// tool is the label of a call's tool. A name that the server does not know, which a
// model may have made up, takes no one's place.
func (l *labels) tool(server, tool string, f *fate) string {
	t := target{server, tool}
	if l.tools.has(t) || !f.unknownTool() && l.servers.has(server) && l.tools.admit(t) {
		return clip(tool)
	}
	return other
}

func (l *labels) code(code string) string {
	if code == "" || l.codes.admit(code) {
		return code
	}
	return other
}

func (l *labels) errorType(f *fate) string {
	if f.code != "" {
		return l.code(f.code)
	}
	return f.errorType()
}

// breaker is the label of a breaker's tool; empty for a server's own.
func (l *labels) breaker(b *observe.BreakerChange) string {
	switch {
	case b.Tool == "" || l.tools.has(target{b.Server, b.Tool}):
		return clip(b.Tool)
	}
	return other
}
