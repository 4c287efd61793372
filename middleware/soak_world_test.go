package middleware_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

const (
	soakHealing   = 3 * time.Second        // that the policy gives the renewal of a session
	soakRetention = 5 * time.Second        // of calls in the ledger: longer than any caller repeats one
	soakNews      = 100 * time.Millisecond // between words of the server to a session that may hear it
)

// goodCall is the manner of calls that check a session.
const goodCall manner = "good call"

// soakKinds are the kinds of faults that concern the connection.
var soakKinds = []string{
	"silence", "answer cut", "connection reset", "connection closed", "stream cut and resumed", "stream without an answer",
	"session forgotten", "HTTP 404", "HTTP 5xx", "HTTP/2 PROTOCOL_ERROR", "HTTP/2 refused stream, GOAWAY",
}

// A soakWorld is a server that never comes to rest, and callers in two sessions that are
// opened once.
type soakWorld struct {
	*chaosWorld
	callers  []*chaosWorker
	storm    *rand.Rand
	order    atomic.Int64
	patience time.Duration // with what has to come to rest
	restarts int
}

// soakServers are those with sessions and a stream of their own, and the stateless ones.
func soakServers() []middlewaretest.Options {
	return slices.DeleteFunc(chaosServers(), func(so middlewaretest.Options) bool {
		return so.Version == middlewaretest.Version20251125 && !so.Sessions
	})
}

func newSoakWorld(so middlewaretest.Options, p *policy.Policy, seed uint64, number, callers int) *soakWorld {
	so.StandaloneSSE = so.Sessions
	w := &soakWorld{
		chaosWorld: &chaosWorld{
			name: fmt.Sprintf("SOAK_SEED=%d, world %d (%s)", seed, number, describe(so)), options: so,
			seed: [2]uint64{seed, uint64(number)}, workers: callers, pause: chaosPause, steady: true,
		},
		storm: rand.New(rand.NewPCG(seed, uint64(number))), patience: soakPatience,
	}
	plain, _ := chaosFaults(&so)
	w.plain = slices.DeleteFunc(plain, func(f middlewaretest.Fault) bool { return !isOfSoak(&so, f) })
	w.begin(p, &idempotency.LedgerOptions{Retention: soakRetention})
	for i := range callers {
		c := w.worker(i)
		c.planner.rounds = [][]middlewaretest.Fault{{{}}} // a tool that asks is met by the weather alone
		w.callers = append(w.callers, c)
	}
	return w
}

// isOfSoak leaves out the lies of a 404: where the session is lost in the same moment, they
// are believed.
func isOfSoak(so *middlewaretest.Options, f middlewaretest.Fault) bool {
	if f.Runs() && (f.Status == http.StatusNotFound || f.ForgetSessions) {
		return false
	}
	return slices.ContainsFunc(soakKinds, func(kind string) bool { return chaosKind(so, f) == kind+" | "+f.Execute.String() })
}

// soakPolicy is that of the chaos campaign, with less patience for a server that does not
// answer a handshake.
func soakPolicy() *policy.Policy {
	p := chaosPolicy()
	// A doubt is remembered for as long as the guard asks for it.
	p.Rules = append(p.Rules, policy.Rule{Name: "guard", Settings: policy.Settings{Key: policy.Key{Guard: soakRetention}}})
	p.Rules[len(p.Rules)-1].Settings.Session.Timeout = soakHealing
	return p
}

// work lets the callers call until the time comes, in bad weather. It returns when the
// last of them has.
func (w *soakWorld) work(until time.Time) {
	var weather, callers sync.WaitGroup
	done := make(chan struct{})
	weather.Go(func() { w.weather(done) })
	for _, c := range w.callers {
		callers.Go(func() {
			for time.Now().Before(until) {
				c.pursue(c.planner.next(int(w.order.Add(1))))
			}
		})
	}
	callers.Wait()
	close(done)
	weather.Wait()
	w.server.ClearScripts()
	w.refuseCancels()
}

// weather happens to the server as a whole: it restarts, also while it is being asked to
// renew a session, forgets sessions, drops connections, ends its own streams.
func (w *soakWorld) weather(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(300*time.Millisecond + time.Duration(w.storm.Int64N(int64(2*time.Second)))):
			w.strike()
		}
	}
}

func (w *soakWorld) strike() {
	s := w.server
	late := middlewaretest.Fault{Name: "late", Delay: 200 * time.Millisecond}
	switch w.storm.IntN(8) {
	case 0:
		s.DropConnections()
	case 1:
		s.EndStreams()
		s.ScriptMethod("GET", pick(w.storm, []middlewaretest.Fault{middlewaretest.Status(503), middlewaretest.Status(405), middlewaretest.Reset(), late}))
	case 2:
		s.ForgetSessions()
	case 3:
		s.ScriptMethod("ping", pick(w.storm, []middlewaretest.Fault{middlewaretest.Status(503), middlewaretest.Reset(), late}))
		w.restart()
	case 4, 5:
		s.ScriptMethod("initialize", pick(w.storm, []middlewaretest.Fault{middlewaretest.Status(503), middlewaretest.Close(), middlewaretest.Hang(), late}))
		w.restart()
	default:
		w.restart()
	}
}

func (w *soakWorld) restart() {
	w.restarts++
	w.server.Restart()
}

// idle restarts the server while nothing but its own stream is open, and waits until it is
// heard again. It returns how long that took.
func (w *soakWorld) idle() (time.Duration, []string) {
	w.closeIdle()
	for range 2 {
		w.restart()
		time.Sleep(time.Duration(w.storm.Int64N(int64(200 * time.Millisecond))))
	}
	if !w.options.Sessions {
		return 0, nil // the SDK does not open a subscription again (go-sdk v1.8.0)
	}
	began := time.Now()
	for i, p := range w.processes {
		if !w.hears(p) {
			return time.Since(began), []string{fmt.Sprintf("%s: after %v, session %d does not hear the server, which has %d streams and %d sessions",
				w.name, w.patience, i, w.server.Subscribers(), w.server.Sessions())}
		}
	}
	return time.Since(began), nil
}

// hears reports whether what the server says of itself arrives.
func (w *soakWorld) hears(p *chaosProcess) bool {
	before, until := p.news.Load(), time.Now().Add(w.patience)
	for p.news.Load() == before {
		if time.Now().After(until) {
			return false
		}
		w.server.NotifyToolsChanged()
		time.Sleep(soakNews)
	}
	return true
}

// checkSessions calls each tool of a caller in the sessions that were opened at the start,
// which has to succeed at once.
func (w *soakWorld) checkSessions() []string {
	w.closeIdle()
	c := w.callers[0]
	var complaints []string
	for i, p := range w.processes {
		for _, class := range []policy.Safety{policy.ReadOnly, policy.Idempotent, policy.Keyed, policy.Unsafe} {
			for _, asks := range []bool{false, true} {
				plan := chaosPlan{order: int(w.order.Add(1)), class: class, asks: asks, manner: goodCall}
				in := &chaosIntent{chaosPlan: plan, name: plan.tool(c.number)}
				w.remember(in)
				if said := c.call(in, p, context.Background()); said.err != nil || said.record.Outcome != observe.ToolSuccess || len(said.record.Attempts) != 1 {
					complaints = append(complaints, fmt.Sprintf("%s: a good call of %s in session %d: %v, %+v", w.name, in.name, i, said.err, said.record))
				}
			}
		}
	}
	return complaints
}

// streams is how many streams of its own the server has when nothing is amiss, and so
// how many sessions and, when nothing is under way, connections.
func (w *soakWorld) streams() int {
	if w.options.Sessions {
		return len(w.processes)
	}
	return 0
}

// leaks tells of connections that no stream needs, before a restart hides them.
func (w *soakWorld) leaks() []string {
	if n := settle(w.connections, w.streams(), w.patience); n > w.streams() {
		return []string{fmt.Sprintf("%s: the server has %d connections after the calls, want %d", w.name, n, w.streams())}
	}
	return nil
}

// leftovers are what callers left at a server that is heard again.
func (w *soakWorld) leftovers() []string {
	var complaints []string
	for _, c := range []struct {
		what string
		has  func() int
	}{{"sessions", w.server.Sessions}, {"streams of its own", w.server.Subscribers}, {"connections", w.connections}} {
		if n := settle(c.has, w.streams(), w.patience); n != w.streams() {
			complaints = append(complaints, fmt.Sprintf("%s: the server has %d %s, want %d", w.name, n, c.what, w.streams()))
		}
	}
	return complaints
}

// connections is the number of connections that are in use.
func (w *soakWorld) connections() int {
	w.closeIdle()
	return w.server.Connections()
}

// forget drops what has been judged, so that memory tells about the library.
func (w *soakWorld) forget() {
	w.intents, w.restarts = nil, 0
	w.server.Reset()
	w.server.ForgetAnswers()
}

// settle waits, but not for ever, until a number is not above a limit, and returns it.
func settle(has func() int, limit int, patience time.Duration) int {
	for until := time.Now().Add(patience); has() > limit && time.Now().Before(until); {
		time.Sleep(20 * time.Millisecond)
	}
	return has()
}
