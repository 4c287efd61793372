package middlewaretest

import (
	"strconv"
	"strings"
	"sync"
)

// maxHeld bounds the faults that wait for a later round of a call; beyond it the
// calls that wait are answered honestly.
const maxHeld = 100_000

// AnyTool is the name under which a script holds for every tool that has none of
// its own.
const AnyTool = ""

// Script makes the next calls of tool meet these faults, one each, in order,
// after those of earlier Script calls; then the tool is normal again. The zero
// Fault stands for an honest answer in between. Calls that come together take
// their faults in the order of their arrival. A redirect's target and a round
// that brings the user's answers take none.
func (s *Server) Script(tool string, faults ...Fault) {
	c := s.scripts
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tools[tool] = append(c.tools[tool], faults...)
}

// Always makes every call of tool meet the fault, after those that are scripted.
// The zero Fault ends that.
func (s *Server) Always(tool string, f Fault) { s.scripts.setAlways(s.scripts.alwaysTools, tool, f) }

// ScriptPOSTs answers the next POSTs with these statuses, whatever they carry
// (initialize and notifications too); a 2xx lets the POST pass.
func (s *Server) ScriptPOSTs(statuses ...int) {
	c := s.scripts
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posts = append(c.posts, statuses...)
}

// ScriptMethod makes the next requests, or notifications, of a JSON-RPC method
// meet these faults, one each. "GET" and "DELETE" stand for these HTTP requests.
// For "tools/call" it comes before what is scripted for the tool.
func (s *Server) ScriptMethod(method string, faults ...Fault) {
	c := s.scripts
	c.mu.Lock()
	defer c.mu.Unlock()
	c.methods[method] = append(c.methods[method], faults...)
}

// AlwaysMethod makes every request of a JSON-RPC method meet the fault, after
// those that are scripted. The zero Fault ends that.
func (s *Server) AlwaysMethod(method string, f Fault) {
	s.scripts.setAlways(s.scripts.alwaysMethods, method, f)
}

// ClearScripts drops everything that was scripted.
func (s *Server) ClearScripts() {
	c := s.scripts
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posts = nil
	clear(c.tools)
	clear(c.methods)
	clear(c.alwaysTools)
	clear(c.alwaysMethods)
	clear(c.held)
}

// Pending returns the number of faults that are scripted for tool and have not
// been taken by a call.
func (s *Server) Pending(tool string) int {
	c := s.scripts
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.tools[tool])
}

// scripts hold the faults that are to strike. What they hand out are copies.
type scripts struct {
	mu            sync.Mutex
	posts         []int
	tools         map[string][]Fault
	methods       map[string][]Fault
	alwaysTools   map[string]Fault
	alwaysMethods map[string]Fault
	held          map[string]Fault // by the state of the round that they wait for
	holds         int
}

func newScripts() *scripts {
	return &scripts{
		tools: map[string][]Fault{}, methods: map[string][]Fault{},
		alwaysTools: map[string]Fault{}, alwaysMethods: map[string]Fault{}, held: map[string]Fault{},
	}
}

func (c *scripts) setAlways(m map[string]Fault, name string, f Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.isZero() {
		delete(m, name)
		return
	}
	f.sticky = true
	m[name] = f
}

// post takes the next status for a POST; 0 means none.
func (c *scripts) post() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.posts) == 0 {
		return 0
	}
	status := c.posts[0]
	c.posts = c.posts[1:]
	return status
}

// method takes the next fault for a method.
func (c *scripts) method(name string) *Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := take(c.methods, name); f != nil {
		return f
	}
	return peek(c.alwaysMethods, name)
}

// call takes the next fault for a tool.
func (c *scripts) call(tool string) *Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range []string{tool, AnyTool} {
		if f := take(c.tools, name); f != nil {
			return f
		}
	}
	for _, name := range []string{tool, AnyTool} {
		if f := peek(c.alwaysTools, name); f != nil {
			return f
		}
	}
	return nil
}

func take(m map[string][]Fault, name string) *Fault {
	q := m[name]
	if len(q) == 0 {
		return nil
	}
	f := q[0]
	if m[name] = q[1:]; len(q) == 1 {
		delete(m, name)
	}
	return &f
}

func peek(m map[string]Fault, name string) *Fault {
	f, ok := m[name]
	if !ok {
		return nil
	}
	return &f
}

// hold keeps a fault for the next round of a call, and returns the state by which
// that round will be known.
func (c *scripts) hold(f Fault, round int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.held) >= maxHeld {
		clear(c.held)
	}
	c.holds++
	key := "held:" + strconv.Itoa(c.holds)
	c.held[key] = f
	return roundState(key, round)
}

// release returns the fault that waits for the round with this state. One that
// strikes only once is not returned again: the call can be resumed.
func (c *scripts) release(state string) *Fault {
	i := strings.LastIndexByte(state, ':')
	if i < 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f := peek(c.held, state[:i])
	if f != nil && !f.sticky && !f.EveryRound {
		delete(c.held, state[:i])
	}
	return f
}
