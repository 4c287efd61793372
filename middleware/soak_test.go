package middleware_test

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/policy"
)

// What a run without the variables SOAK_TIME and SOAK_SEED does.
const (
	soakTime = 20 * time.Second
	soakSeed = 1
)

const (
	soakCallers  = 64               // parallel, over all servers
	soakRounds   = 4                // at least
	soakRound    = 15 * time.Second // at most
	soakWork     = 2 * time.Second  // of a round that the callers call, at least
	soakIdle     = 2 * time.Second  // of a round that the callers pause, about
	soakPatience = 45 * time.Second // after which something hangs; a session waits up to 30 s between two renewals
)

// A quarter into the soak everything has found its size. What the heap may have grown
// since: a call that leaves a hundred bytes behind shows in ten minutes.
const (
	soakHeapShare = 1.1
	soakHeapBytes = 3 << 20
)

// TestSoak lets 64 callers call in sessions that are opened once, at servers that
// restart, forget sessions, stall and cut streams all the time. In between all callers
// pause, the servers restart while only their own streams are open, and everything is
// looked at: every call has come back and ended in what the servers have booked (see
// chaosWorld.judge), the sessions work, and no goroutine, connection, stream, session or
// memory is left.
//
// SOAK_TIME is the duration, SOAK_SEED the seed; "random" picks one. See "make soak" and
// docs/soak.md.
func TestSoak(t *testing.T) {
	before := goleak.IgnoreCurrent()
	seed, duration := seedFrom(t, "SOAK_SEED"), soakTimeFrom(t)
	t.Logf("SOAK_SEED=%d SOAK_TIME=%v", seed, duration)
	s := newSoak(soakPolicy(), seed, soakCallers/len(soakServers()))
	if err := s.connect(); err != nil {
		t.Fatal(err)
	}
	s.idle(t, &soakRow{}) // subscriptions end here, for good
	s.judge(t, &soakRow{})
	s.look(t, &soakRow{})
	s.began = time.Now()
	rounds := max(soakRounds, int(duration/soakRound))
	for i := range rounds {
		s.round(t, time.Until(s.began.Add(duration))/time.Duration(rounds-i))
	}
	s.checkHeap(t)
	s.close()
	s.stalls.close()
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	t.Logf("%s\n%s", s.text(), s.table.text(s.began, time.Now(), s.stalls))
}

func soakTimeFrom(t *testing.T) time.Duration {
	v := os.Getenv("SOAK_TIME")
	if v == "" {
		return soakTime
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		t.Fatalf("SOAK_TIME: %v", err)
	}
	return d
}

// TestSoakNotices checks that the soak notices what it looks for: sessions that are not
// renewed, payments that are repeated, connections that are left.
func TestSoakNotices(t *testing.T) {
	off := false
	for _, c := range []struct {
		name, want string
		rule       policy.Rule
		spoil      func(*testing.T, *soakWorld)
	}{
		{name: "not renewed", want: "does not hear the server", rule: policy.Rule{Settings: policy.Settings{Session: policy.Session{Heal: &off}}}},
		{name: "repeated", want: "effects of one unsafe intent", rule: policy.Rule{Tool: "pay_*", Settings: policy.Settings{Safety: policy.Idempotent}}},
		{name: "left", want: "3 connections, want 2", spoil: leaveConnection},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rules := soakPolicy()
			rules.Rules = append([]policy.Rule{c.rule}, rules.Rules...)
			w := newSoakWorld(middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true, Stream: true}, rules, soakSeed, 0, 8)
			defer w.close()
			w.pause, w.patience = 20*time.Millisecond, time.Second
			if err := w.connect(); err != nil {
				t.Fatal(err)
			}
			machine := watchStalls()
			defer machine.close()
			w.work(time.Now().Add(2 * time.Second))
			time.Sleep(chaosQuiet)
			_, complaints := w.idle()
			if c.spoil != nil {
				c.spoil(t, w)
			}
			complaints = append(append(complaints, w.judge(newChaosTable(), machine)...), w.leftovers()...)
			if !strings.Contains(strings.Join(complaints, "\n"), c.want) {
				t.Errorf("%d complaints, none that %q: %q", len(complaints), c.want, complaints)
			}
		})
	}
}

func leaveConnection(t *testing.T, w *soakWorld) {
	u, err := url.Parse(w.server.URL())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
}

// A soak is one run of TestSoak.
type soak struct {
	worlds     []*soakWorld
	began      time.Time
	stalls     *stalls
	table      *chaosTable
	rows       []*soakRow
	goroutines int // of sessions that are idle; 0 before it is known
}

// A soakRow is one round.
type soakRow struct {
	end                         time.Duration
	calls, restarts, handshakes int
	heard                       time.Duration // until the servers were heard again, at most
	goroutines, connections     int
	heap                        uint64
}

func newSoak(p *policy.Policy, seed uint64, callers int) *soak {
	s := &soak{began: time.Now(), stalls: watchStalls(), table: newChaosTable()}
	for i, so := range soakServers() {
		s.worlds = append(s.worlds, newSoakWorld(so, p, seed, i, callers))
	}
	return s
}

func (s *soak) connect() error {
	for _, w := range s.worlds {
		if err := w.connect(); err != nil {
			return err
		}
	}
	return nil
}

// round is a time of calls, one of idleness, and a look at what came of them.
func (s *soak) round(t *testing.T, length time.Duration) {
	row := &soakRow{}
	s.work(t, time.Now().Add(max(length-soakIdle, soakWork)))
	time.Sleep(chaosQuiet)
	s.lookForLeaks(t)
	s.idle(t, row)
	s.judge(t, row)
	s.look(t, row)
	s.rows = append(s.rows, row)
	t.Logf("%s", row)
	if t.Failed() {
		t.Fatalf("after %v", row.end)
	}
}

func (s *soak) work(t *testing.T, until time.Time) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.each(func(w *soakWorld) { w.work(until) })
	}()
	select {
	case <-done:
	case <-time.After(time.Until(until) + soakPatience + soakTime):
		t.Fatalf("hangs\n%s", allStacks())
	}
}

func (s *soak) idle(t *testing.T, row *soakRow) {
	var mu sync.Mutex
	s.each(func(w *soakWorld) {
		heard, complaints := w.idle()
		mu.Lock()
		defer mu.Unlock()
		row.heard = max(row.heard, heard)
		report(t, complaints)
	})
}

func (s *soak) judge(t *testing.T, row *soakRow) {
	s.each(func(w *soakWorld) { report(t, w.checkSessions()) })
	for _, w := range s.worlds {
		before := s.table.total.calls
		report(t, w.judge(s.table, s.stalls))
		row.calls += s.table.total.calls - before
		row.restarts += w.restarts
		row.handshakes += w.server.Counts().Initializes
		w.forget()
	}
}

// look measures what is there while nothing is under way.
func (s *soak) look(t *testing.T, row *soakRow) {
	for _, w := range s.worlds {
		report(t, w.leftovers())
		row.connections += w.server.Connections()
	}
	if s.goroutines == 0 {
		time.Sleep(chaosQuiet)
		s.goroutines = runtime.NumGoroutine()
	}
	row.goroutines = s.countGoroutines(t)
	row.heap, row.end = heap(), time.Since(s.began)
}

// lookForLeaks looks what the calls left behind, before restarts hide it.
func (s *soak) lookForLeaks(t *testing.T) {
	for _, w := range s.worlds {
		report(t, w.leaks())
	}
	s.countGoroutines(t)
}

// running is the number of goroutines without those of idle connections, such as a
// session that was renewed in the meantime leaves behind.
func (s *soak) running() int {
	for _, w := range s.worlds {
		w.closeIdle()
	}
	return runtime.NumGoroutine()
}

func (s *soak) countGoroutines(t *testing.T) int {
	n := settle(s.running, s.goroutines, soakPatience)
	if n > s.goroutines {
		t.Errorf("%d goroutines, %d at the start\n%s", n, s.goroutines, allStacks())
	}
	return n
}

func (s *soak) checkHeap(t *testing.T) {
	early, late := s.rows[(len(s.rows)-1)/4].heap, s.rows[len(s.rows)-1].heap
	if float64(late) > soakHeapShare*float64(early)+soakHeapBytes {
		t.Errorf("%d bytes of heap after a quarter, %d at the end\n%s", early, late, s.text())
	}
}

func (s *soak) each(do func(*soakWorld)) {
	var all sync.WaitGroup
	for _, w := range s.worlds {
		all.Go(func() { do(w) })
	}
	all.Wait()
}

func (s *soak) close() {
	for _, w := range s.worlds {
		w.close()
	}
}

// text renders the rounds in Markdown.
func (s *soak) text() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d goroutines at the start\n\n| after | calls | restarts | handshakes | heard again within | goroutines | connections | heap, KiB |\n|%s\n",
		s.goroutines, strings.Repeat("---|", 8))
	for _, r := range s.rows {
		fmt.Fprintf(&b, "%s\n", r)
	}
	return b.String()
}

func (r *soakRow) String() string {
	return fmt.Sprintf("| %v | %d | %d | %d | %v | %d | %d | %d |", r.end.Round(time.Second), r.calls, r.restarts, r.handshakes,
		r.heard.Round(10*time.Millisecond), r.goroutines, r.connections, r.heap>>10)
}

// heap is the memory that is reachable.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what had a finalizer or a cleanup
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func allStacks() []byte {
	stacks := make([]byte, 1<<20)
	return stacks[:runtime.Stack(stacks, true)]
}

func report(t *testing.T, complaints []string) {
	t.Helper()
	for _, text := range complaints[:min(len(complaints), chaosComplaints)] {
		t.Error(text)
	}
}
