//go:build unix

package boltstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/idempotency/boltstore"
	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
)

// Where the ledger cannot be used, nothing is paid, and reading goes on: through the
// whole library, counted at a server.

var shopTools = []middlewaretest.Tool{
	{Name: "pay", Run: sell}, {Name: "keyed", Run: sell, Keyed: true}, {Name: "read_price", Run: sell},
}

// sell answers at length, so that a ledger grows.
func sell(_ context.Context, c middlewaretest.Call) middlewaretest.Result {
	var intent int
	c.Arg("intent", &intent)
	return middlewaretest.Result{Text: fmt.Sprintf("sold %d ", intent) + strings.Repeat("x", 20_000)}
}

// onShops runs a test against a shop of each protocol version.
func onShops(t *testing.T, test func(t *testing.T, shop *middlewaretest.Server)) {
	for _, version := range []string{middlewaretest.Version20251125, middlewaretest.Version20260728} {
		t.Run(version, func(t *testing.T) {
			s := middlewaretest.NewServer(&middlewaretest.Options{Version: version, Tools: shopTools})
			defer s.Close()
			test(t, s)
		})
	}
}

// A said is what a host was told of one call.
type said struct {
	Tool     string
	Intent   int
	Text     string // of a result
	Outcome  observe.Outcome
	Delivery observe.Delivery
	Kind     idempotency.Kind // of the ledger's refusal
	Error    string           // for people and models
	Cause    string           // for the operator
	Settled  string           // as the record tells it
}

// A shopper makes calls and keeps what it was told.
type shopper struct {
	*client
	settled string
}

func newShopper(url string, store idempotency.Store) (*shopper, error) {
	s := &shopper{}
	var err error
	s.client, err = connect(background, url, middleware.Options{
		Ledger: idempotency.NewLedger(store, nil),
		OnRecord: func(_ context.Context, r *observe.Record) {
			if s.settled = ""; r.Ledger != nil {
				s.settled = r.Ledger.Settled
			}
		},
	})
	return s, err
}

func (s *shopper) ask(tool string, intent int) said {
	text, failed := s.call(background, tool, strconv.Itoa(intent), map[string]any{"intent": intent})
	told := said{Tool: tool, Intent: intent, Text: strings.TrimRight(text, " x"), Settled: s.settled}
	if failed != nil {
		told.Outcome, told.Delivery, told.Error, told.Cause = failed.Outcome, failed.Delivery, failed.Error(), fmt.Sprint(failed.Cause())
	}
	if blocked := refusalOf(failed); blocked != nil {
		told.Kind = blocked.Kind
	}
	return told
}

// blockedByStore complains unless the call was held back because of its ledger, in
// words that help, the file's among them only where the operator looks.
func (s said) blockedByStore(t *testing.T, path, advice string) {
	t.Helper()
	if s.Outcome != observe.Blocked || s.Delivery != observe.NotSent || s.Kind != idempotency.KindStore {
		t.Errorf("%s %d is not blocked: %+v", s.Tool, s.Intent, s)
	}
	if !strings.Contains(s.Error, "nothing was sent") || strings.Contains(s.Error, path) {
		t.Errorf("%s %d: %s", s.Tool, s.Intent, s.Error)
	}
	if !strings.Contains(s.Cause, path) || !strings.Contains(s.Cause, advice) {
		t.Errorf("%s %d, to the operator: %s", s.Tool, s.Intent, s.Cause)
	}
}

// sells complains unless the call has a result.
func (s said) sells(t *testing.T) {
	t.Helper()
	if s.Text != fmt.Sprintf("sold %d", s.Intent) {
		t.Errorf("%s %d has no result: %+v", s.Tool, s.Intent, s)
	}
}

// refusesToPay checks that a shopper with such a store buys nothing, and reads.
func refusesToPay(t *testing.T, shop *middlewaretest.Server, store idempotency.Store, path, advice string) {
	t.Helper()
	s, err := newShopper(shop.URL(), store)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for i := range 3 {
		s.ask("pay", i).blockedByStore(t, path, advice)
		s.ask("keyed", i).blockedByStore(t, path, advice)
		s.ask("read_price", i).sells(t)
	}
	if unsafe, keyed, read := shop.Posts("pay"), shop.Posts("keyed"), shop.Effects("read_price"); unsafe+keyed > 0 || read != 3 {
		t.Errorf("POSTs: %d unsafe, %d keyed; %d reads", unsafe, keyed, read)
	}
}

// openAnyway opens a ledger's file, and goes on without one where that fails.
func openAnyway(t *testing.T, path string, want error) idempotency.Store {
	t.Helper()
	store, err := boltstore.Open(path, &boltstore.Options{Timeout: 50 * time.Millisecond})
	if !errors.Is(err, want) {
		t.Fatalf("opened: %v", err)
	}
	if err != nil {
		return idempotency.Unavailable(err)
	}
	return store
}

func TestNothingIsPaidWhileAnotherProcessHoldsTheFile(t *testing.T) {
	onShops(t, func(t *testing.T, shop *middlewaretest.Server) {
		path := ledgerFile(t)
		closeStore(t, open(t, path))
		release := holdElsewhere(t, path)
		refusesToPay(t, shop, openAnyway(t, path, boltstore.ErrLocked), path, "end that process")
		release()
		s, err := newShopper(shop.URL(), open(t, path))
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		s.ask("pay", 0).sells(t)
	})
}

func TestNothingIsPaidWithATruncatedFile(t *testing.T) {
	content, _, _ := filled(t)
	onShops(t, func(t *testing.T, shop *middlewaretest.Server) {
		path := ledgerFile(t)
		if err := os.WriteFile(path, content[:len(content)/2], 0o600); err != nil {
			t.Fatal(err)
		}
		refusesToPay(t, shop, openAnyway(t, path, boltstore.ErrCorrupt), path, "restore it from a copy")
	})
}

func TestNothingIsPaidWhenTheFileIsTruncatedInUse(t *testing.T) {
	content, _, _ := filled(t)
	onShops(t, func(t *testing.T, shop *middlewaretest.Server) {
		path := ledgerFile(t)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		store := open(t, path)
		if err := os.Truncate(path, 8192); err != nil {
			t.Fatal(err)
		}
		refusesToPay(t, shop, store, path, "restore it from a copy")
	})
}

// shop is a process on a full disk. It buys until it is refused, and then tries on.
func shop(path, url string) {
	store, err := boltstore.Open(path, nil)
	must(err)
	s, err := newShopper(url, store)
	must(err)
	limitFiles()
	for i, refused := 0, 0; refused < 8 && i < 200; i++ {
		told := s.ask([]string{"pay", "keyed"}[i%2], i)
		if told.Kind == idempotency.KindStore {
			refused++
		}
		must(json.NewEncoder(os.Stdout).Encode(told))
	}
	must(json.NewEncoder(os.Stdout).Encode(s.ask("pay", 0)))
	must(json.NewEncoder(os.Stdout).Encode(s.ask("read_price", 1)))
	s.close()
	must(store.Close())
}

// toldOnFullDisk is what the process on a full disk was told, call by call.
func toldOnFullDisk(t *testing.T, path, url string) (all []said) {
	t.Helper()
	out, err := child(t, "shopper", path, url).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Fatalf("%v\n%s%s", err, out, exit.Stderr)
	}
	lines := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var told said
		if err := lines.Decode(&told); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		all = append(all, told)
	}
}

// On a full disk nothing new is paid; what was paid is known there, and to the next
// process, whose disk has room.
func TestNothingIsPaidOnAFullDisk(t *testing.T) {
	onShops(t, func(t *testing.T, shop *middlewaretest.Server) {
		path := ledgerFile(t)
		all := toldOnFullDisk(t, path, shop.URL())
		calls, replay, read := all[:len(all)-2], all[len(all)-2], all[len(all)-1]
		replay.sells(t)
		read.sells(t)
		paid := map[int]said{}
		for _, told := range calls {
			if told.Kind == idempotency.KindStore {
				told.blockedByStore(t, path, "see to the disk")
				continue
			}
			told.sells(t)
			paid[told.Intent] = told
		}
		if posts := shop.Posts("pay") + shop.Posts("keyed"); posts != len(paid) || posts < 2 || len(calls) != posts+8 {
			t.Errorf("%d calls, %d paid, %d POSTs", len(calls), len(paid), posts)
		}
		nextProcess(t, shop, path, calls, paid)
	})
}

// nextProcess is asked for the same again: it gets what was settled, holds back or asks
// by its key what could not be, and makes what was refused.
func nextProcess(t *testing.T, shop *middlewaretest.Server, path string, calls []said, paid map[int]said) {
	t.Helper()
	s, err := newShopper(shop.URL(), open(t, path))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	doubts := 0
	for _, before := range calls {
		told := s.ask(before.Tool, before.Intent)
		if p, ok := paid[before.Intent]; ok && p.Settled != string(idempotency.Completed) {
			doubts++
			if before.Tool == "pay" {
				if told.Outcome != observe.Blocked || told.Kind != idempotency.KindUnknown {
					t.Errorf("pay %d could not be settled, and now: %+v", before.Intent, told)
				}
				continue
			}
		}
		told.sells(t)
	}
	for _, tool := range []string{"pay", "keyed"} {
		for intent, n := range shop.EffectsByArg(tool, "intent") {
			if n != 1 {
				t.Errorf("%s %s was paid %d times", tool, intent, n)
			}
		}
	}
	if doubts == 0 {
		t.Error("every call could be settled")
	}
}
