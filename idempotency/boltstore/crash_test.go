//go:build unix

package boltstore_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/surecall/surecall/idempotency/boltstore"
)

const (
	batch       = 8                      // intents of a payer's life
	longestLife = 150 * time.Millisecond // from the time that it is ready
	longestStop = 3 * time.Millisecond   // at a point of the journal
)

// A campaign kills payers and asks others, with the same file, for the same intents.
type campaign struct {
	*bank
	role, path string
	random     *rand.Rand
	first      int // of the intents that are being carried out
	intents    int // so far
	kills      map[string]int

	mu         sync.Mutex
	told       map[int]string // how an intent ended, to the payer who asked last
	complaints []string
}

func newCampaign(t *testing.T, role string, seed uint64) *campaign {
	t.Logf("SURECALL_CRASH_SEED=%d", seed)
	c := &campaign{
		bank: newBank(seed), role: role, path: ledgerFile(t), random: rand.New(rand.NewPCG(seed, 2)),
		intents: batch, kills: map[string]int{}, told: map[int]string{},
	}
	t.Cleanup(c.close)
	return c
}

// A process that makes payments with the whole library is killed again and again, and
// asked again for the same ones: SURECALL_CRASH_KILLS times, 15 by default.
// SURECALL_CRASH_SEED repeats what the bank does and when the kills come, as far as the
// machine's own timing allows.
func TestCrashes(t *testing.T) {
	kills, seed := 15, rand.Uint64()
	if s := os.Getenv("SURECALL_CRASH_KILLS"); s != "" {
		kills, _ = strconv.Atoi(s)
	}
	if s := os.Getenv("SURECALL_CRASH_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	c := newCampaign(t, "payer", seed)
	c.run(t, kills)
	c.verify()
	for _, text := range c.complaints {
		t.Error(text)
	}
	checkFile(t, c.path)
	t.Log(c.table())
	for _, phase := range phases {
		// How long a write takes is the disk's affair.
		if kills >= 200 && c.kills[phase] == 0 && !strings.HasPrefix(phase, "while") {
			t.Errorf("no kill %s", phase)
		}
	}
}

// TestCrashesNotice checks that the campaign notices what it looks for.
func TestCrashesNotice(t *testing.T) {
	c := newCampaign(t, "forgetful", 7)
	c.run(t, 8)
	c.verify()
	if !strings.Contains(strings.Join(c.complaints, "\n"), "2 payments") {
		t.Errorf("no complaint about two payments, but %q", c.complaints)
	}
}

// run makes so many kills, and then lets one payer live who is asked for everything.
func (c *campaign) run(t *testing.T, kills int) {
	t.Helper()
	for killed := 0; killed < kills; {
		o := orders{urls: c.urls(), first: c.first, n: batch, seed: c.random.Uint64(), pause: longestStop}
		l := c.begin(t, o)
		if l.endsAfter(c.lifetime()) {
			killed++
			c.kills[l.phase]++
		}
		if c.random.IntN(3) == 0 {
			c.first, c.intents = c.intents, c.intents+batch
		}
	}
	c.begin(t, orders{urls: c.urls(), n: c.intents}).endsAfter(nil)
	c.close()
}

// hear takes in what a payer was told, at the time that it is told.
func (c *campaign) hear(intent int, how string) {
	paid := c.paid(intent)
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.told[intent]
	c.told[intent] = how
	receipt := receiptOf(intent, 1)
	switch {
	case before == receipt && how != receipt:
		c.complain(intent, "ended with a result, and then as %q", how)
	case how == refused && paid > 0, how == receipt && paid != 1:
		c.complain(intent, "ended as %q after %d payments", how, paid)
	case how != receipt && how != refused && how != unknown:
		c.complain(intent, "ended as %q", how)
	}
}

func (c *campaign) complain(intent int, format string, args ...any) {
	c.complaints = append(c.complaints, fmt.Sprintf("intent %d (%s): ", intent, toolOf(intent))+fmt.Sprintf(format, args...))
}

// verify looks at every intent when nothing is under way any more.
func (c *campaign) verify() {
	for i := range c.intents {
		told, paid := c.told[i], c.paid(i)
		switch {
		case told == "":
			c.complain(i, "has no ending")
		case paid > 1, told == refused && paid > 0, told == receiptOf(i, 1) && paid != 1:
			c.complain(i, "ended as %q with %d payments", told, paid)
		}
	}
}

// checkFile opens a file, which is checked then, and lets bbolt look at every page.
func checkFile(t *testing.T, path string) {
	t.Helper()
	s, err := boltstore.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.View(func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			t.Error(err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
