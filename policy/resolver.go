package policy

import (
	"strings"
	"sync"
)

const (
	// generation is the number of tools in each half of a resolver's memory.
	generation = 2048
	// longestName bounds the bytes of a server's and tool's name together for
	// which an answer is kept; names come from servers and models.
	longestName = 1024
)

// A Resolver answers [Policy.Resolve] and [Policy.Reads] from memory. It keeps
// the few thousand tools that were asked for last, so that endless distinct
// names cost time but not memory. The zero value resolves the defaults. It is
// safe for concurrent use.
type Resolver struct {
	policy *Policy

	// A full young map becomes the old one, and what is asked for again moves back:
	// what is in use stays, and nothing has to be ordered or counted.
	mu         sync.RWMutex
	young, old map[question]*Tool
}

// question is what a resolver is asked.
type question struct {
	server, tool string
	hints        Annotations
	reads        bool
}

// NewResolver returns a resolver for p, which may be nil and must not be modified
// from now on. For another policy, make another resolver.
func NewResolver(p *Policy) *Resolver { return &Resolver{policy: p} }

// Resolve is [Policy.Resolve].
func (r *Resolver) Resolve(server, tool string, a *Annotations) *Tool {
	q := question{server: server, tool: tool}
	if a != nil {
		q.hints = *a
	}
	return r.answer(q)
}

// Reads is [Policy.Reads].
func (r *Resolver) Reads(server string) *Tool {
	return r.answer(question{server: server, reads: true})
}

func (r *Resolver) answer(q question) *Tool {
	r.mu.RLock()
	t, fresh := r.young[q]
	if !fresh {
		t = r.old[q]
	}
	r.mu.RUnlock()
	if fresh {
		return t
	}
	// A name may be a part of a whole message: the copy lets go of the rest.
	q.server, q.tool = strings.Clone(q.server), strings.Clone(q.tool)
	if t == nil {
		t = r.resolve(q)
	}
	r.keep(q, t)
	return t
}

func (r *Resolver) resolve(q question) *Tool {
	if q.reads {
		return r.policy.Reads(q.server)
	}
	return r.policy.Resolve(q.server, q.tool, &q.hints)
}

func (r *Resolver) keep(q question, t *Tool) {
	if len(q.server)+len(q.tool) > longestName {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.young == nil || len(r.young) >= generation {
		r.old, r.young = r.young, make(map[question]*Tool)
	}
	r.young[q] = t
}
