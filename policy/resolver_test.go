package policy_test

import (
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/surecall/surecall/policy"
)

func hundredRules() *policy.Policy { return rules(100) }

func rules(n int) *policy.Policy {
	p := &policy.Policy{}
	for i := range n {
		p.Rules = append(p.Rules, policy.Rule{
			Name: "rule " + strconv.Itoa(i), Server: "server-" + strconv.Itoa(i%10), Tool: "*_" + strconv.Itoa(i),
			Settings: policy.Settings{Safety: policy.ReadOnly, Retry: policy.Retry{Repeats: i + 1}},
		})
	}
	return p
}

// A resolver gives what the policy gives, seen before or not.
func TestResolver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &policy.Policy{Rules: rapid.SliceOfN(anyRule(), 0, 5).Draw(t, "rules")}
		r := policy.NewResolver(p)
		for range 3 {
			server := rapid.SampledFrom([]string{"server", "other", ""}).Draw(t, "server")
			tool := rapid.SampledFrom([]string{"read_x", "pay", ""}).Draw(t, "tool")
			hints := rapid.SampledFrom([]*policy.Annotations{nil, {}, {ReadOnly: true}, {Idempotent: true}}).Draw(t, "hints")
			want, first, second := p.Resolve(server, tool, hints), r.Resolve(server, tool, hints), r.Resolve(server, tool, hints)
			if !reflect.DeepEqual(first, want) || second != first {
				t.Fatalf("got %+v, then %+v, want %+v", first, second, want)
			}
			if reads := r.Reads(server); !reflect.DeepEqual(reads, p.Reads(server)) || r.Reads(server) != reads {
				t.Fatalf("reads: got %+v", reads)
			}
		}
	})
}

func TestZeroResolver(t *testing.T) {
	var zero policy.Resolver
	want := (*policy.Policy)(nil).Resolve("s", "t", nil)
	for range 2 {
		if got := zero.Resolve("s", "t", nil); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v", got)
		}
	}
	if got := policy.NewResolver(nil).Reads("s"); got.Safety != policy.ReadOnly {
		t.Errorf("got %+v", got)
	}
}

// What a server hints is a part of the question.
func TestResolverKeepsHintsApart(t *testing.T) {
	r := policy.NewResolver(&policy.Policy{Rules: []policy.Rule{{Settings: policy.Settings{TrustAnnotations: new(true)}}}})
	for range 2 {
		for _, row := range []struct {
			hints *policy.Annotations
			want  policy.Safety
		}{
			{nil, policy.Unsafe}, {&policy.Annotations{ReadOnly: true}, policy.ReadOnly}, {&policy.Annotations{Idempotent: true}, policy.Idempotent},
		} {
			if got := r.Resolve("s", "t", row.hints).Safety; got != row.want {
				t.Errorf("%+v: %q", row.hints, got)
			}
		}
		if got := r.Reads("s").Safety; got != policy.ReadOnly {
			t.Errorf("reads: %q", got)
		}
	}
}

// Endless distinct names, long ones among them, hold a bounded amount of memory,
// and a tool in use stays.
func TestResolverIsBounded(t *testing.T) {
	r := policy.NewResolver(hundredRules())
	inUse := r.Resolve("server-1", "read_1", nil)
	long := strings.Repeat("x", 1<<18)
	before := heap()
	for i := range 40_000 {
		name := strconv.Itoa(i)
		r.Resolve("server", "tool-"+name, nil)
		if i%50 == 0 {
			r.Resolve("server", long+name, nil)
			body := []byte(name + long)
			r.Resolve("server", string(body)[:len(name)], nil) // a part of a message
		}
		if got := r.Resolve("server-1", "read_1", nil); got != inUse {
			t.Fatalf("a tool in use was forgotten after %d names", i)
		}
	}
	if grown := heap() - before; grown > 12<<20 {
		t.Errorf("grown by %d MB", grown>>20)
	}
	runtime.KeepAlive(r)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestResolverConcurrently(t *testing.T) {
	p := hundredRules()
	r := policy.NewResolver(p)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				server, tool := fmt.Sprintf("server-%d", i%10), fmt.Sprintf("x_%d", (i*7+g)%100)
				if i%3 == 0 {
					tool += strconv.Itoa(i * (g + 1))
				}
				got, want := r.Resolve(server, tool, nil), p.Resolve(server, tool, nil)
				if got.Rule != want.Rule || got.Safety != want.Safety || got.Retry.Repeats != want.Retry.Repeats || got.Name != tool {
					t.Errorf("%s/%s: got %+v", server, tool, got)
					return
				}
				r.Reads(server)
			}
		})
	}
	wg.Wait()
}

func TestResolverDoesNotAllocate(t *testing.T) {
	r, hints := policy.NewResolver(hundredRules()), &policy.Annotations{ReadOnly: true}
	r.Resolve("server-1", "read_1", hints)
	r.Reads("server-1")
	if n := testing.AllocsPerRun(100, func() {
		r.Resolve("server-1", "read_1", hints)
		r.Reads("server-1")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// What was seen once is found in far less than a microsecond, however many rules there
// are; the bound leaves room for a busy machine and for the race detector.
func TestResolverIsQuick(t *testing.T) {
	p := rules(10_000)
	r := policy.NewResolver(p)
	const batch = 1000
	best := time.Hour
	for range 50 {
		begin := time.Now()
		for range batch {
			r.Resolve("server-7", "read_7", nil)
		}
		best = min(best, time.Since(begin)/batch)
	}
	if r.Resolve("server-7", "read_7", nil).Rule != "rule 7" {
		t.Error("resolved by another rule")
	}
	if best > time.Microsecond {
		t.Errorf("%v", best)
	}
	t.Log(best)
}

func BenchmarkResolver(b *testing.B) {
	r := policy.NewResolver(hundredRules())
	b.Run("seen", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Resolve("server-1", "read_some_thing_1", nil)
		}
	})
	b.Run("seen, in parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				r.Resolve("server-1", "read_some_thing_1", nil)
			}
		})
	})
	b.Run("unseen, 10,000 rules", func(b *testing.B) {
		p := rules(10_000)
		b.ReportAllocs()
		for b.Loop() {
			p.Resolve("server-7", "read_7", nil)
		}
	})
	b.Run("unseen, 100 rules", func(b *testing.B) {
		p := hundredRules()
		b.ReportAllocs()
		for b.Loop() {
			p.Resolve("server-1", "read_some_thing_1", nil)
		}
	})
}
