package boltstore_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

// A bank counts its payments by intent. It has a server for each protocol version,
// which outlive the payers. Two of its tools honour keys.
type bank struct {
	servers [2]*middlewaretest.Server

	mu      sync.Mutex
	random  *rand.Rand
	effects map[int]int
}

func newBank(seed uint64) *bank {
	b := &bank{random: rand.New(rand.NewPCG(seed, 0)), effects: map[int]int{}}
	tools := []middlewaretest.Tool{
		{Name: "pay", Run: b.pay},
		{Name: "keyed", Run: b.pay, Keyed: true},
		{Name: "pay_stream", Run: b.pay, Streams: true},
		{Name: "keyed_stream", Run: b.pay, Keyed: true, Streams: true},
	}
	b.servers[0] = middlewaretest.NewServer(&middlewaretest.Options{Tools: tools})
	b.servers[1] = middlewaretest.NewServer(&middlewaretest.Options{Tools: tools, Version: middlewaretest.Version20251125, Sessions: true})
	return b
}

// close ends the bank when every payment under way has been made.
func (b *bank) close() {
	for _, s := range b.servers {
		s.Close()
	}
}

func (b *bank) urls() [2]string { return [2]string{b.servers[0].URL(), b.servers[1].URL()} }

// chance draws from 0 to n-1.
func (b *bank) chance(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.random.IntN(n)
}

// pay takes its time before and after the payment, now and then a long time. It does
// not notice that anybody has gone.
func (b *bank) pay(_ context.Context, c middlewaretest.Call) middlewaretest.Result {
	var intent int
	c.Arg("intent", &intent)
	b.work()
	receipt := b.take(intent)
	b.work()
	return middlewaretest.Result{Text: receipt}
}

func (b *bank) work() {
	longest := 6_000
	if b.chance(8) == 0 {
		longest = 40_000
	}
	time.Sleep(time.Duration(b.chance(longest)) * time.Microsecond)
}

func (b *bank) take(intent int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.effects[intent]++
	return receiptOf(intent, b.effects[intent])
}

func receiptOf(intent, payment int) string {
	return fmt.Sprintf("receipt %d of %d", payment, intent)
}

func (b *bank) paid(intent int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.effects[intent]
}

// payments is a copy of what was paid, by intent.
func (b *bank) payments() map[int]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.effects)
}

// plan lets the next n calls at each server meet what a bank and the gateways before
// it do: mostly nothing.
func (b *bank) plan(n int) {
	strange := []middlewaretest.Fault{
		middlewaretest.Status(403),
		middlewaretest.Status(429),
		middlewaretest.Status(503).Executed(),
		middlewaretest.Status(503).ExecutedLater(),
		middlewaretest.Reset().Executed(),
	}
	for _, s := range b.servers {
		s.ClearScripts()
		for range n {
			var f middlewaretest.Fault
			if b.chance(4) == 0 {
				f = strange[b.chance(len(strange))]
			}
			s.Script(middlewaretest.AnyTool, f)
		}
	}
}
