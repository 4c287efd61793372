package middlewaretest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Select makes a scenario hold from the next session on: the next initialize,
// or on 2026-07-28, which has no sessions, the next server/discover of any
// client. Sessions that have begun keep theirs. config is a JSON object with the
// members that [Scenarios] shows; nil means the defaults. Scripted faults come
// before a scenario's.
func (s *Server) Select(name string, config json.RawMessage) error {
	p, err := buildPlan(name, config, &s.opts)
	if err != nil {
		return err
	}
	s.stage.selected(&selection{name: name, config: slices.Clone(config), plan: p})
	return nil
}

// Selected returns the scenario that the next session will have.
func (s *Server) Selected() (name string, config json.RawMessage) {
	sel := s.stage.selection()
	return sel.name, slices.Clone(sel.config)
}

// A selection is a scenario that was chosen.
type selection struct {
	name   string
	config json.RawMessage
	plan   plan

	mu     sync.Mutex
	token  int // number of the token that is valid, from 0
	passed int // requests that it has let pass
}

// A play is a scenario in one session.
type play struct {
	*selection
	mu      sync.Mutex
	posts   int
	methods map[string]int
	calls   int
}

// A stage holds the selection, and the play of those that have no session.
type stage struct {
	mu      sync.Mutex
	next    *selection
	current *play
}

func newStage() *stage { return &stage{next: &selection{name: Baseline}} }

func (g *stage) selected(sel *selection) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next = sel
}

func (g *stage) selection() *selection {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.next
}

// begin starts a play of the selected scenario.
func (g *stage) begin() *play {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.start()
}

// running returns the play that began last, or starts the first one.
func (g *stage) running() *play {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.current == nil {
		return g.start()
	}
	return g.current
}

// start replaces the play. g.mu is held.
func (g *stage) start() *play {
	g.current = &play{selection: g.next, methods: map[string]int{}}
	return g.current
}

// handshakes are the methods that begin a session, and belong to none of the
// counts of a scenario.
var handshakes = []string{"initialize", "notifications/initialized", "server/discover"}

// enterStage finds the play of the request: a new one for the request that
// begins a session.
func (x *exchange) enterStage() {
	switch {
	case x.beginsSession():
		x.play = x.s.stage.begin()
	case x.session != nil && x.session.play != nil:
		x.play = x.session.play
	default:
		x.play = x.s.stage.running()
	}
}

// beginsSession reports whether the request is the one from which a session
// begins in the server's version.
func (x *exchange) beginsSession() bool {
	if x.s.opts.stateless() {
		return x.msg.Method == "server/discover"
	}
	return x.msg.Method == "initialize"
}

// stageStatus takes the next status of the scenario's sequences; 0 means none.
func (x *exchange) stageStatus() int {
	if x.play == nil || slices.Contains(handshakes, x.msg.Method) {
		return 0
	}
	return x.play.status(x.msg.Method)
}

func (p *play) status(method string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, m := p.posts, p.methods[method]
	p.posts++
	if _, counted := p.plan.methodStatuses[method]; counted {
		p.methods[method]++
	}
	if n < len(p.plan.statuses) {
		return p.plan.statuses[n]
	}
	if own := p.plan.methodStatuses[method]; m < len(own) {
		return own[m]
	}
	return 0
}

// stageFault is the fault of the scenario for this call, or nil.
func (x *exchange) stageFault() *Fault {
	p := x.play
	if p == nil || !p.plan.concerns(x.p.Name) {
		return nil
	}
	if field := p.plan.legacyArgument; field != "" && !x.s.opts.stateless() && argument(x.p.Arguments, field) == "" {
		f := ToolError("This host cannot ask the user. Call the tool again with the argument " + field + ".")
		f.Name, f.Execute = "no-bridge", Never
		return &f
	}
	return p.plan.fault
}

// tool is the tool that is called, as the scenario has it.
func (x *exchange) tool() Tool {
	t := x.s.tools.get(x.p.Name)
	if p := x.play; p != nil && p.plan.edit != nil && p.plan.concerns(t.Name) {
		p.plan.edit(&t)
	}
	return t
}

// stageTools are the tools that the scenario lists.
func (x *exchange) stageTools() []Tool {
	tools := x.s.tools.all()
	if x.play != nil && x.play.plan.list != nil {
		tools = x.play.plan.list(tools, x.play.called())
	}
	return tools
}

func (p *play) called() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// stageCalled books a call that was answered, and tells subscribers if the list
// of tools changes by it.
func (x *exchange) stageCalled() {
	p := x.play
	if p == nil {
		return
	}
	p.mu.Lock()
	p.calls++
	changed := p.calls == p.plan.changeAfter
	p.mu.Unlock()
	if changed {
		x.s.NotifyToolsChanged()
	}
}

// stageAuthorized checks the token that a scenario wants, and answers the request
// if it is not the right one (RFC 6750, section 3).
func (x *exchange) stageAuthorized() bool {
	if x.play == nil || x.play.plan.tokenRequests == 0 {
		return true
	}
	token, _ := strings.CutPrefix(x.r.Header.Get("Authorization"), "Bearer ")
	challenge := "Bearer"
	if token != "" {
		if x.play.pass(token) {
			return true
		}
		challenge = `Bearer error="invalid_token", error_description="The access token expired"`
	}
	x.w.Header().Set("Www-Authenticate", challenge)
	x.text(http.StatusUnauthorized, "unauthorized")
	return false
}

// pass reports whether a token is valid. Token n is, from the expiry of the one
// before until it has let its number of requests pass.
func (sel *selection) pass(token string) bool {
	sel.mu.Lock()
	defer sel.mu.Unlock()
	if sel.passed >= sel.plan.tokenRequests {
		sel.token, sel.passed = sel.token+1, 0
	}
	if token != TokenPrefix+strconv.Itoa(sel.token+1) {
		return false
	}
	sel.passed++
	return true
}
