package middleware_test

import (
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/policy"
)

// What a run without the variables CHAOS_CALLS and CHAOS_SEED does.
const (
	chaosCalls = 600
	chaosSeed  = 1
)

const (
	chaosWorkers    = 5                      // parallel callers of one server
	chaosPerWorld   = 600                    // intents that one server sees at most
	chaosLateness   = 100 * time.Millisecond // that a call may come after its deadline
	chaosQuiet      = 100 * time.Millisecond // in which tools that still run come to their end
	chaosComplaints = 10                     // violations of one server that are told
)

// TestChaos is the campaign: random faults of every kind, before and after
// execution, against callers of all four safety classes that are cancelled, run
// into limits, call again as frameworks do, and share a ledger with another
// process. The truth is what the servers have booked; see chaosWorld.judge for what
// must never happen.
//
// CHAOS_CALLS is the number of intents, CHAOS_SEED the seed, which is printed;
// "random" picks one. A seed brings back every plan; what scheduling makes of it may
// differ. See "make chaos" and docs/chaos.md.
func TestChaos(t *testing.T) {
	c := &campaign{seed: seedFrom(t, "CHAOS_SEED"), left: chaosCallsFrom(t), table: newChaosTable()}
	t.Logf("CHAOS_SEED=%d CHAOS_CALLS=%d", c.seed, c.left)
	started := time.Now()
	c.stalls = watchStalls()
	defer c.stalls.close()
	for batch := 0; c.left > 0 && !t.Failed(); batch++ {
		c.batch(t, batch)
		t.Logf("%d intents to go", c.left)
	}
	t.Logf("%s", c.table.text(started, time.Now(), c.stalls))
}

func chaosCallsFrom(t *testing.T) int {
	v := os.Getenv("CHAOS_CALLS")
	if v == "" {
		return chaosCalls
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Fatalf("CHAOS_CALLS: %v", err)
	}
	return n
}

// seedFrom reads the seed of a campaign from the environment.
func seedFrom(t *testing.T, variable string) uint64 {
	switch v := os.Getenv(variable); v {
	case "":
		return chaosSeed
	case "random":
		return rand.Uint64()
	default:
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", variable, err)
		}
		return n
	}
}

// campaign is one run of TestChaos.
type campaign struct {
	seed   uint64
	left   int // intents to go
	table  *chaosTable
	stalls *stalls
}

// chaosServers are all combinations of HTTP version, protocol version with and
// without sessions, and form of the answer.
func chaosServers() []middlewaretest.Options {
	var all []middlewaretest.Options
	for _, http2 := range []bool{false, true} {
		for _, stream := range []bool{false, true} {
			all = append(all,
				middlewaretest.Options{HTTP2: http2, Stream: stream, Version: middlewaretest.Version20260728},
				middlewaretest.Options{HTTP2: http2, Stream: stream, EventIDs: stream, Version: middlewaretest.Version20251125},
				middlewaretest.Options{HTTP2: http2, Stream: stream, EventIDs: stream, Version: middlewaretest.Version20251125, Sessions: true, StandaloneSSE: stream},
			)
		}
	}
	return all
}

// batch runs one server of each kind at the same time, and looks what they left
// behind.
func (c *campaign) batch(t *testing.T, number int) {
	before := goleak.IgnoreCurrent()
	worlds := c.open(t, number)
	idle := runtime.NumGoroutine()
	var all sync.WaitGroup
	for _, w := range worlds {
		all.Go(w.run)
	}
	all.Wait()
	time.Sleep(chaosQuiet)
	checkGoroutines(t, worlds, idle)
	for _, w := range worlds {
		complaints := w.checkSessions()
		w.close()
		complaints = append(complaints, w.judge(c.table, c.stalls)...)
		for _, text := range complaints[:min(len(complaints), chaosComplaints)] {
			t.Error(text)
		}
	}
	if err := goleak.Find(before); err != nil {
		t.Errorf("batch %d: %v", number, err)
	}
}

func (c *campaign) open(t *testing.T, number int) []*chaosWorld {
	var worlds []*chaosWorld
	for i, so := range chaosServers() {
		n := min(chaosPerWorld, (c.left+len(chaosServers())-i-1)/(len(chaosServers())-i))
		c.left -= n
		w := newChaosWorld(so, chaosPolicy(), c.seed, number*len(chaosServers())+i, n)
		if err := w.connect(); err != nil {
			t.Fatal(err)
		}
		worlds = append(worlds, w)
	}
	return worlds
}

// checkGoroutines checks that calls leave no goroutine behind while their session
// lives on. A session that was renewed has some of its own.
func checkGoroutines(t *testing.T, worlds []*chaosWorld, idle int) {
	allowed := idle
	for _, w := range worlds {
		allowed += 8 + 8*w.renewed()
	}
	for range 100 {
		for _, w := range worlds {
			w.closeIdle()
		}
		if runtime.NumGoroutine() <= allowed {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%d goroutines after the calls, %d before them\n%s", runtime.NumGoroutine(), idle, allStacks())
}

// TestChaosNotices checks that the campaign notices what it looks for: payments that
// a policy wrongly calls idempotent are made twice.
func TestChaosNotices(t *testing.T) {
	wrong := policy.Rule{Tool: "pay_*", Settings: policy.Settings{Safety: policy.Idempotent}}
	rules := chaosPolicy()
	rules.Rules = append([]policy.Rule{wrong}, rules.Rules...)
	w := newChaosWorld(middlewaretest.Options{}, rules, chaosSeed, 0, 100)
	defer w.close()
	w.pause = 0
	if err := w.connect(); err != nil {
		t.Fatal(err)
	}
	machine := watchStalls()
	defer machine.close()
	w.run()
	if complaints := w.judge(newChaosTable(), machine); !strings.Contains(strings.Join(complaints, "\n"), "effects of one unsafe intent") {
		t.Errorf("%d complaints, none of two payments", len(complaints))
	}
}
