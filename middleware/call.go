package middleware

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// A call is one tools/call, or one request of a reading method, on its way through
// the middlewares. The first of them creates it; the others find it in the
// context. Only the caller's goroutine touches it.
type call struct {
	request   mcp.Request // as the middlewares have changed it
	session   *mcp.ClientSession
	method    string
	server    server
	rules     *policy.Resolver // the policy that the call began with
	tool      *policy.Tool
	key       string
	guarded   bool // an equal call would adopt the key while the outcome is unknown
	named     bool // the host can ask for this call again, by intent or key
	rounds    int  // rounds that were answered with a question, of earlier calls of the intent too
	asked     int  // of this call
	begun     bool // the server has had an earlier round than the last
	given     any  // the arguments as the caller gave them
	hideEmail bool
	doubt     bool // an earlier try of this call may have taken effect
	ledger    *observe.LedgerRecord
	started   time.Time

	token    string // for progress, where that is ours
	entry    *entry // the attempt's, while it is let in
	attempts []attempt
	mirrored *paramHeaders // of the attempt, where they are not the SDK's
	judged   bool          // the last attempt is that of the latest next
	decision policy.Decision
	would    []observe.Choice // in shadow mode, what was not done
	breaker  string
	waits    []observe.Wait // of the attempt under way
	text     string         // what the model is told, when that is ours
}

// An attempt is what one pass through the loop came to.
type attempt struct {
	observe.Judgement
	posts    []observe.Post
	waits    []observe.Wait // before the attempt
	started  time.Time
	took     time.Duration
	breaker  string          // the breakers' state after the attempt
	decision policy.Decision // what followed from it
	err      error           // what the SDK returned
	says     signals         // of the server; or the remaining wait of a local refusal
	resume   *resumption     // what a repeat goes on with

	reconciled Finding // of the host, about the attempt
}

type callKey struct{}

// callFrom returns the call that a middleware further out has begun for this very
// request. The context of a call also reaches input handlers on 2026-07-28: what
// they call in turn is another request and begins a call of its own.
func callFrom(ctx context.Context, req mcp.Request) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	if c == nil || c.request != req {
		return nil
	}
	return c
}

// begin returns the call for a request, creating it where this middleware is the
// outermost. It returns nil for methods that are not ours to handle.
func (c *core) begin(ctx context.Context, method string, req mcp.Request) (context.Context, *call) {
	if method != methodCallTool && !isReading(method) {
		return ctx, nil
	}
	if cl := callFrom(ctx, req); cl != nil {
		return ctx, cl
	}
	cl := &call{request: req, method: method, started: time.Now(), hideEmail: c.opts.HideEmail}
	cl.session, _ = req.GetSession().(*mcp.ClientSession)
	cl.server = c.server(cl.session)
	cl.rules = c.rulesFor(ctx)
	if method == methodCallTool {
		name := toolName(req)
		hints, _ := c.hints.find(target{cl.server.name, name})
		hints.Keyed = cl.announced() != ""
		cl.tool = cl.rules.Resolve(cl.server.name, name, &hints)
	} else {
		cl.tool = cl.rules.Reads(cl.server.name)
	}
	return context.WithValue(ctx, callKey{}, cl), cl
}

// isReading reports whether a method only reads, so that it may be sent again
// after a transport failure: otherwise one 503 to tools/list hides the tools.
func isReading(method string) bool {
	switch method {
	case "initialize", "server/discover", "ping", "completion/complete",
		"prompts/get", "resources/read",
		"tools/list", "prompts/list", "resources/list", "resources/templates/list":
		return true
	}
	return false
}

func (cl *call) isTool() bool { return cl.method == methodCallTool }

// params returns the parameters of a tools/call.
func (cl *call) params() *mcp.CallToolParams {
	p, _ := cl.request.GetParams().(*mcp.CallToolParams)
	return p
}

// replace sends other parameters from here on. The caller's are never changed.
func (cl *call) replace(p *mcp.CallToolParams) {
	cl.request = &mcp.ClientRequest[mcp.Params]{Session: cl.session, Params: p}
}

func toolName(req mcp.Request) string {
	if p, ok := req.GetParams().(*mcp.CallToolParams); ok && p != nil {
		return p.Name
	}
	return ""
}

// protocolVersion is the version that the session negotiated, or "".
func (cl *call) protocolVersion() string {
	if cl.session == nil {
		return ""
	}
	if r := cl.session.InitializeResult(); r != nil {
		return r.ProtocolVersion
	}
	return ""
}

// add appends an attempt that was made, or refused.
func (cl *call) add(a attempt) {
	a.waits, cl.waits = cl.waits, nil
	if a.started.IsZero() {
		a.started = time.Now() // refused: it took no time
	}
	cl.attempts = append(cl.attempts, a)
	cl.judged = true
}

// waited notes what the next attempt has to wait for.
func (cl *call) waited(reason observe.WaitReason, d time.Duration) {
	if d > 0 {
		cl.waits = append(cl.waits, observe.Wait{For: reason, Ms: milliseconds(d)})
	}
}

// last returns the latest attempt, judging by what next returned where no Attempt
// middleware stands further in.
func (cl *call) last(ctx context.Context, res mcp.Result, err error) *attempt {
	if !cl.judged {
		a, _, _ := new(wire).judge(ctx, res, err)
		a.heed(res, cl.tool)
		if own, ok := ErrorFrom(err); ok {
			a.Judgement = own.Judgement()
			a.says = signals{wait: own.RetryAfter, hasWait: own.RetryAfter > 0}
		}
		cl.add(a)
	}
	return &cl.attempts[len(cl.attempts)-1]
}

// limited bounds the whole call where the caller has not.
func (cl *call) limited(ctx context.Context) (context.Context, func()) {
	hard := cl.tool.Limits.Hard()
	if _, ok := ctx.Deadline(); ok || hard == 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithTimeout(ctx, hard)
	// Not at once: the end of a stream that was answered is still being read, so that
	// its connection can be used again.
	return ctx, func() { time.AfterFunc(2*drainTime, cancel) }
}

// delivery is the call's: that of a terminal answer, else the gravest of all
// attempts. A cancel or a refused connection after an attempt in the dark is in
// the dark.
func (cl *call) delivery() observe.Delivery {
	if n := len(cl.attempts); n > 0 && cl.attempts[n-1].Delivery == observe.Answered {
		return observe.Answered
	}
	if cl.doubt {
		return observe.Unknown
	}
	d := gravest(cl.attempts)
	if cl.begun {
		// The server has had an earlier round: a call from above begins with that.
		d = observe.Gravest(d, observe.Answered)
	}
	return d
}

func gravest(attempts []attempt) observe.Delivery {
	var d observe.Delivery
	for i := range attempts {
		if attempts[i].reconciled != DidNotHappen {
			d = observe.Gravest(d, attempts[i].Delivery)
		}
	}
	return d
}
