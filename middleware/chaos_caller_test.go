package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/observe"
)

// chaosMark is the name in _meta that tells calls of one intent apart at the server.
const chaosMark = "chaos/call"

// A chaosIntent is one decision to act, and what its caller was told.
type chaosIntent struct {
	chaosPlan
	name string // of the tool

	mu    sync.Mutex
	calls []*chaosSaid
}

// A chaosSaid is what one call was said to be.
type chaosSaid struct {
	mark    string
	session *chaosSession
	record  *observe.Record
	err     error
	replay  bool      // answered from the ledger
	due     time.Time // its deadline, or when it was cancelled
	back    time.Time
	late    time.Duration // after due, less what the machine stood still meanwhile
}

// A chaosWorker makes one call after the other.
type chaosWorker struct {
	world   *chaosWorld
	number  int
	planner *chaosPlanner
}

func (w *chaosWorker) run() {
	for order := w.number; order < w.world.calls; order += w.world.workers {
		w.pursue(w.planner.next(order))
	}
}

// pursue carries out a plan.
func (w *chaosWorker) pursue(plan chaosPlan) {
	in := &chaosIntent{chaosPlan: plan, name: plan.tool(w.number)}
	w.world.remember(in)
	time.Sleep(plan.pause)
	if w.world.server.Pending(in.name) == 0 {
		w.world.server.Script(in.name, plan.faults...)
	}
	w.act(in)
}

// act makes the intent's calls.
func (w *chaosWorker) act(in *chaosIntent) {
	here, there := w.world.processes[in.order%2], w.world.processes[1-in.order%2]
	switch in.manner {
	case callsOnce:
		w.call(in, here, w.context(in, in.named))
	case asFramework:
		ctx := w.context(in, in.named)
		if said := w.call(in, here, ctx); callsAgain(said.err) {
			w.call(in, here, ctx)
		}
	case asModel:
		ctx := w.context(in, false)
		if said := w.call(in, here, ctx); said.err != nil && said.record.Delivery != observe.Answered {
			w.call(in, here, ctx)
		}
	case inACrowd:
		w.crowd(in, here, there)
	case asRestarted:
		w.rerun(in, w.context(in, true), here, there, here)
	case withOwnKey:
		w.rerun(in, idempotency.WithKey(context.Background(), w.name(in)), here, here)
	default:
		w.rerun(in, w.context(in, true), here, here, here)
	}
}

func (w *chaosWorker) rerun(in *chaosIntent, ctx context.Context, processes ...*chaosProcess) {
	for _, p := range processes {
		w.call(in, p, ctx)
	}
}

func (w *chaosWorker) crowd(in *chaosIntent, here, there *chaosProcess) {
	ctx := w.context(in, true)
	var all sync.WaitGroup
	for _, p := range []*chaosProcess{here, here, there} {
		all.Go(func() { w.call(in, p, ctx) })
	}
	all.Wait()
}

func (w *chaosWorker) name(in *chaosIntent) string { return fmt.Sprintf("conversation/%d", in.order) }

func (w *chaosWorker) context(in *chaosIntent, named bool) context.Context {
	ctx := context.Background()
	if named {
		ctx = idempotency.WithIntent(ctx, w.name(in))
	}
	return ctx
}

// callsAgain is what frameworks look for before they run a call again.
func callsAgain(err error) bool {
	for _, target := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, mcp.ErrConnectionClosed, mcp.ErrSessionMissing} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// lost reports whether an error says that the session is gone.
func lost(err error) bool {
	var e *observe.Error
	return errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, mcp.ErrSessionMissing) || errors.As(err, &e) && e.Outcome == observe.SessionLost
}

// call makes one call, and connects anew where the session was lost.
func (w *chaosWorker) call(in *chaosIntent, p *chaosProcess, ctx context.Context) *chaosSaid {
	said := in.begin(p)
	ctx = context.WithValue(ctx, chaosRecordKey{}, said)
	limit := in.limit
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
		if in.cancel > 0 && in.cancel < limit {
			limit = in.cancel
			defer time.AfterFunc(limit, cancel).Stop()
		}
	}
	said.due = time.Now().Add(limit)
	res, err := said.session.CallTool(ctx, &mcp.CallToolParams{
		Name: in.name, Arguments: map[string]any{"order": in.order, "ms": in.takes}, Meta: mcp.Meta{chaosMark: said.mark},
	})
	said.back, said.err = time.Now(), err
	if limit == 0 {
		said.due = said.back
	}
	said.replay = res != nil && res.Meta[idempotency.MetaReplay] != nil || said.replayedError()
	if !w.world.steady && (lost(err) || callsAgain(err)) {
		if err := p.renew(said.session); err != nil {
			panic(err)
		}
	}
	return said
}

// begin adds a call to the intent.
func (in *chaosIntent) begin(p *chaosProcess) *chaosSaid {
	in.mu.Lock()
	defer in.mu.Unlock()
	said := &chaosSaid{mark: fmt.Sprintf("%d.%d", in.order, len(in.calls)), session: p.current()}
	in.calls = append(in.calls, said)
	return said
}

// replayedError reports whether an error is an earlier call's answer.
func (s *chaosSaid) replayedError() bool {
	return s.record.Ledger != nil && s.record.Ledger.Step == observe.LedgerReplayed
}
