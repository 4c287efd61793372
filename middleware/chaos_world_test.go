package middleware_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/policy"
)

// A chaosWorld is one server and two processes that call its tools over one ledger.
type chaosWorld struct {
	name          string
	options       middlewaretest.Options
	server        *middlewaretest.Server
	plain, rounds []middlewaretest.Fault
	processes     [2]*chaosProcess
	seed          [2]uint64
	workers       int           // parallel callers
	calls         int           // intents
	pause         time.Duration // between intents of a caller, on average
	steady        bool          // sessions are to live to the end, and to hear the server's own messages

	mu      sync.Mutex
	intents []*chaosIntent
}

func newChaosWorld(so middlewaretest.Options, p *policy.Policy, seed uint64, number, calls int) *chaosWorld {
	w := &chaosWorld{
		name: fmt.Sprintf("CHAOS_SEED=%d, world %d (%s)", seed, number, describe(so)), options: so,
		seed: [2]uint64{seed, uint64(number)}, workers: chaosWorkers, calls: calls, pause: chaosPause,
	}
	w.plain, w.rounds = chaosFaults(&so)
	w.begin(p, nil)
	return w
}

// begin starts the server and the processes.
func (w *chaosWorld) begin(p *policy.Policy, opts *idempotency.LedgerOptions) {
	w.server = middlewaretest.NewServer(&w.options)
	for i := range w.workers {
		w.addTools(i)
	}
	w.refuseCancels()
	store := idempotency.NewMemory(nil)
	for i := range w.processes {
		w.processes[i] = newChaosProcess(w, p, idempotency.NewLedger(store, opts))
	}
}

// refuseCancels makes some servers refuse every notifications/cancelled.
func (w *chaosWorld) refuseCancels() {
	statuses := []int{0, 0, 0, 400, 404, 500}
	if status := statuses[w.seed[1]%uint64(len(statuses))]; status != 0 {
		w.server.AlwaysMethod("notifications/cancelled", middlewaretest.Status(status))
	}
}

// addTools gives a caller its tools.
func (w *chaosWorld) addTools(worker int) {
	for _, class := range []policy.Safety{policy.ReadOnly, policy.Idempotent, policy.Keyed, policy.Unsafe} {
		for _, asks := range []bool{false, true} {
			plan := chaosPlan{class: class, asks: asks}
			tool := middlewaretest.Tool{
				Name: plan.tool(worker), Keyed: class == policy.Keyed, Run: runChaosTool,
				InputSchema: []byte(`{"type":"object","properties":{"order":{"type":"integer"},"ms":{"type":"integer"},"idempotency_key":{"type":"string"}}}`),
			}
			if asks {
				tool.Ask = "Go ahead?"
			}
			w.server.SetTool(tool)
		}
	}
}

// runChaosTool takes its time and has its effect.
func runChaosTool(ctx context.Context, c middlewaretest.Call) middlewaretest.Result {
	var ms int
	c.Arg("ms", &ms)
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
	case <-ctx.Done():
	}
	return middlewaretest.Result{Text: "done"}
}

// chaosPolicy is the default one, with short waits, no retry budget and a result
// limit as the catalogue wants it. The gate is the tool's and breakers are off but
// for one caller, so that calls reach the wire.
func chaosPolicy() *policy.Policy {
	return &policy.Policy{Rules: []policy.Rule{
		{Tool: "read_*", Settings: policy.Settings{Safety: policy.ReadOnly}},
		{Tool: "label_*", Settings: policy.Settings{Safety: policy.Idempotent}},
		{Tool: "keyed_*", Settings: policy.Settings{Safety: policy.Keyed}},
		{Tool: "keyed_1", Settings: policy.Settings{Key: policy.Key{Header: "Idempotency-Key"}}},
		{Tool: "keyed_2", Settings: policy.Settings{Key: policy.Key{Argument: "idempotency_key"}}},
		{Tool: "*_1", Settings: policy.Settings{Limits: policy.Limits{Attempt: 120 * time.Millisecond}}},
		{Tool: "*_3", Settings: policy.Settings{Limits: policy.Limits{Headers: 100 * time.Millisecond, Silence: 50 * time.Millisecond}}},
		{Tool: "*_4", Settings: policy.Settings{Breaker: policy.Breaker{Failures: 5, Open: 20 * time.Millisecond}}},
		{Settings: policy.Settings{
			Retry:     policy.Retry{Backoff: 2 * time.Millisecond, BackoffCap: 20 * time.Millisecond, Budget: -1},
			Breaker:   policy.Breaker{Failures: -1},
			Gate:      policy.GateTool,
			MaxResult: middlewaretest.CatalogueResultLimit,
		}},
	}}
}

// limitedWorker reports whether the policy ends a silent attempt of this caller.
func limitedWorker(worker int) bool { return worker == 1 || worker == 3 }

func (w *chaosWorld) connect() error {
	for _, p := range w.processes {
		if err := p.connect(); err != nil {
			return err
		}
	}
	return nil
}

// run lets all callers do their part, while connections are dropped now and then.
func (w *chaosWorld) run() {
	done := make(chan struct{})
	var restarts, callers sync.WaitGroup
	restarts.Go(func() { w.dropConnections(done) })
	for i := range w.workers {
		callers.Go(func() { w.worker(i).run() })
	}
	callers.Wait()
	close(done)
	restarts.Wait()
}

// dropConnections is a proxy that restarts. The SDK ends a session whose standalone
// stream has ended more often than MaxRetries, 5, in all its life (go-sdk v1.8.0,
// handleSSE), so that there are fewer restarts where there is such a stream.
func (w *chaosWorld) dropConnections(done <-chan struct{}) {
	r := rand.New(rand.NewPCG(w.seed[0], w.seed[1]))
	for n := 0; n < 4 || !w.options.StandaloneSSE; n++ {
		select {
		case <-done:
			return
		case <-time.After(200*time.Millisecond + time.Duration(r.Int64N(int64(2*time.Second)))):
			w.server.DropConnections()
		}
	}
}

func (w *chaosWorld) worker(i int) *chaosWorker {
	r := rand.New(rand.NewPCG(w.seed[0], w.seed[1]<<8|uint64(i)+1))
	return &chaosWorker{
		world: w, number: i,
		planner: &chaosPlanner{
			Rand: r, plain: byKind(&w.options, w.plain), rounds: byKind(&w.options, w.rounds), limited: limitedWorker(i),
			wait: w.pause,
		},
	}
}

// remember keeps an intent for the judgement.
func (w *chaosWorld) remember(in *chaosIntent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.intents = append(w.intents, in)
}

func (w *chaosWorld) renewed() int {
	n := 0
	for _, p := range w.processes {
		n += len(p.ended())
	}
	return n
}

func (w *chaosWorld) closeIdle() {
	for _, p := range w.processes {
		p.http.CloseIdleConnections()
	}
}

// checkSessions checks that each session serves a good call, unless the server has
// forgotten it.
func (w *chaosWorld) checkSessions() []string {
	var complaints []string
	for _, p := range w.processes {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		_, err := p.current().CallTool(ctx, &mcp.CallToolParams{Name: "read_alive"})
		cancel()
		switch {
		case lost(err):
			p.current().died, p.current().failure = time.Now(), err
		case err != nil:
			complaints = append(complaints, fmt.Sprintf("%s: a good call at the end: %v", w.name, err))
		}
	}
	for _, p := range w.processes {
		for _, s := range append(p.ended(), p.current()) {
			if !s.died.IsZero() && !w.forgot(s) {
				complaints = append(complaints, fmt.Sprintf("%s: a session that lived from %s died at %s, and the server had not forgotten it: %v",
					w.name, s.began.Format(time.StampMilli), s.died.Format(time.StampMilli), s.failure))
			}
		}
	}
	return complaints
}

// forgot reports whether the server forgot its sessions while this one lived.
func (w *chaosWorld) forgot(s *chaosSession) bool {
	const margin = 100 * time.Millisecond // between arrival and effect of the fault
	for _, e := range w.server.Entries() {
		if forgetsSessions(e.Fault) && e.Time.After(s.began.Add(-margin)) && e.Time.Before(s.died) {
			return true
		}
	}
	return false
}

func (w *chaosWorld) close() {
	for _, p := range w.processes {
		p.close()
	}
	w.server.Close()
}
