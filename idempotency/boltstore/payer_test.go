//go:build unix

package boltstore_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/idempotency/boltstore"
	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/observe"
)

// orders are what a payer is to do in one life: n intents from the first one on, at
// the servers of the two protocol versions.
type orders struct {
	urls     [2]string
	first, n int
	seed     uint64
	pause    time.Duration // at most, at each point of the journal
}

func (o orders) String() string {
	return fmt.Sprintln(o.urls[0], o.urls[1], o.first, o.n, o.seed, int64(o.pause))
}

func ordersFrom(s string) (o orders) {
	_, err := fmt.Sscan(s, &o.urls[0], &o.urls[1], &o.first, &o.n, &o.seed, (*int64)(&o.pause))
	must(err)
	return o
}

// toolOf is the tool of an intent, and serverOf its server: each of the eight kinds in
// turn.
func toolOf(intent int) string {
	return [4]string{"pay", "keyed", "pay_stream", "keyed_stream"}[intent%4]
}
func serverOf(intent int) int { return intent / 4 % 2 }

// payAll carries out its orders over the ledger file. It may be killed anywhere.
func payAll(path, what string) {
	o := ordersFrom(what)
	s, err := boltstore.Open(path, &boltstore.Options{Timeout: 10 * time.Second})
	must(err)
	j := o.journal()
	o.carryOut(j, middleware.Options{Ledger: idempotency.NewLedger(j.store(s), nil)})
	must(s.Close())
}

// payWithoutLedger is a payer who forgets.
func payWithoutLedger(_, what string) {
	o := ordersFrom(what)
	o.carryOut(o.journal(), middleware.Options{NoLedger: true})
}

func (o orders) journal() *journal {
	return &journal{random: rand.New(rand.NewPCG(o.seed, 1)), pause: o.pause}
}

func (o orders) carryOut(j *journal, opts middleware.Options) {
	var clients [2]*client
	for i, url := range o.urls {
		c, err := connect(background, url, opts, j.middleware)
		must(err)
		defer c.close()
		clients[i] = c
	}
	j.reach(ready)
	for i := o.first; i < o.first+o.n; i++ {
		j.intent = i
		j.reach(asked)
		text, failed := clients[serverOf(i)].call(background, toolOf(i), strconv.Itoa(i), map[string]any{"intent": i})
		j.reach(ended, ending(text, failed))
	}
}

const (
	refused = "refused" // the payment was not made
	unknown = "unknown" // it may have been made
)

// ending is how the host takes what it is told: a receipt, "refused", or "unknown".
func ending(receipt string, failed *observe.Error) string {
	blocked := refusalOf(failed)
	switch {
	case failed == nil:
		return receipt
	case blocked != nil && blocked.Kind == idempotency.KindUnknown, failed.Delivery == observe.Unknown:
		return unknown
	case blocked == nil && (failed.Delivery == observe.NotSent || failed.Delivery == observe.Refused):
		return refused
	}
	return failed.Error()
}
