//go:build unix

package boltstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/idempotency/boltstore"
)

var background = context.Background()

// batch is how many intents a payer carries out in one life. Odd ones are keyed.
const batch = 12

func call(i int) idempotency.Call {
	c := idempotency.Call{
		Server: "bank", Tool: "pay", Intent: strconv.Itoa(i), Keyed: i%2 == 1,
		GuardWindow: 10 * time.Minute,
	}
	c.Fingerprint[0], c.Fingerprint[1] = byte(i), byte(i>>8)
	return c
}

// payAll carries out the intents that the bank asks for, and tells it how each
// ended. It may be killed anywhere.
func payAll(path, server string) {
	s, err := boltstore.Open(path, &boltstore.Options{Timeout: 10 * time.Second})
	must(err)
	l := idempotency.NewLedger(s, nil)
	var first, n int
	_, err = fmt.Sscan(get(server+"/ready"), &first, &n)
	must(err)
	for i := first; i < first+n; i++ {
		ended := payOne(l, server, i)
		get(fmt.Sprintf("%s/ended?intent=%d&how=%s", server, i, url.QueryEscape(ended)))
	}
	must(s.Close())
}

func get(url string) string {
	resp, err := http.Get(url)
	must(err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(err)
	return string(b)
}

// payOne says how an intent ended: "receipt N", "refused", or "unknown".
func payOne(l *idempotency.Ledger, server string, i int) string {
	t, err := l.Begin(background, call(i))
	var e *idempotency.Error
	switch {
	case errors.As(err, &e) && e.Kind == idempotency.KindUnknown:
		return "unknown"
	case err != nil:
		return err.Error()
	case t.Answer() != nil:
		return string(t.Answer().Body)
	}
	status, body, err := post(fmt.Sprintf("%s/pay?intent=%d&key=%s", server, i, t.Key()))
	switch {
	case err != nil:
		must(t.Settle(background, idempotency.Settlement{State: idempotency.Unknown}))
		return "unknown"
	case status == http.StatusTooManyRequests:
		must(t.Settle(background, idempotency.Settlement{State: idempotency.Failed}))
		if !t.Since().IsZero() {
			return "unknown" // this try was refused, but one before it may not have been
		}
		return "refused"
	}
	must(t.Settle(background, idempotency.Settlement{State: idempotency.Completed, Answer: body}))
	return string(body)
}

func post(url string) (int, []byte, error) {
	resp, err := http.Post(url, "", nil)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// A bank pays, refuses, or cuts the connection after it has paid. It honours the
// keys of odd intents.
type bank struct {
	*httptest.Server
	ready chan struct{} // a payer asks what to do

	mu      sync.Mutex
	random  *rand.Rand
	first   int // of the intents to be carried out
	n       int
	effects map[int]int
	receipt map[string]string // by key
	ended   map[int]string
}

func newBank(seed uint64) *bank {
	b := &bank{
		ready: make(chan struct{}, 1), random: rand.New(rand.NewPCG(seed, 0)), n: batch,
		effects: map[int]int{}, receipt: map[string]string{}, ended: map[int]string{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/ready", b.ask)
	mux.HandleFunc("/pay", b.pay)
	mux.HandleFunc("/ended", b.end)
	b.Server = httptest.NewServer(mux)
	return b
}

func (b *bank) ask(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprint(w, b.first, b.n)
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// chance draws from 0 to n-1.
func (b *bank) chance(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.random.IntN(n)
}

func (b *bank) pay(w http.ResponseWriter, req *http.Request) {
	i, _ := strconv.Atoi(req.FormValue("intent"))
	time.Sleep(time.Duration(b.chance(2000)) * time.Microsecond)
	if b.chance(10) == 0 {
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	receipt := b.take(i, req.FormValue("key"))
	time.Sleep(time.Duration(b.chance(2000)) * time.Microsecond)
	if b.chance(12) == 0 {
		panic(http.ErrAbortHandler)
	}
	fmt.Fprint(w, receipt)
}

func (b *bank) take(i int, key string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.receipt[key]; r != "" && i%2 == 1 {
		return r
	}
	b.effects[i]++
	b.receipt[key] = fmt.Sprintf("receipt %d of %d", b.effects[i], i)
	return b.receipt[key]
}

func (b *bank) end(_ http.ResponseWriter, req *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, _ := strconv.Atoi(req.FormValue("intent"))
	b.ended[i] = req.FormValue("how")
}

// next asks for other intents from now on.
func (b *bank) next(first, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.first, b.n = first, n
}

// live runs a payer, and kills it after a while; killed reports whether it was still
// alive. A negative while is for ever. Mostly the while starts when the payer has
// opened its ledger.
func (b *bank) live(t *testing.T, path string, while time.Duration, fromStart bool) (killed bool) {
	t.Helper()
	payer := child(t, "payer", path, b.URL)
	var out bytes.Buffer
	payer.Stdout, payer.Stderr = &out, &out
	select {
	case <-b.ready:
	default:
	}
	if err := payer.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- payer.Wait() }()
	err, over := b.wait(done, while, fromStart)
	if !over {
		_ = payer.Process.Signal(syscall.SIGKILL)
		err = <-done
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		t.Fatalf("payer: %v\n%s", err, out.String())
	}
	return false
}

func (b *bank) wait(done chan error, while time.Duration, fromStart bool) (error, bool) {
	if while < 0 {
		return <-done, true
	}
	if !fromStart {
		select {
		case <-b.ready:
		case err := <-done:
			return err, true
		}
	}
	select {
	case <-time.After(while):
		return nil, false
	case err := <-done:
		return err, true
	}
}

// A process that makes payments is killed again and again, and asked again for the
// same ones: SURECALL_CRASH_KILLS times, 15 by default. SURECALL_CRASH_SEED repeats
// what the bank does and when the kills come, as far as the machine's own timing
// allows.
func TestCrashes(t *testing.T) {
	kills, seed := 15, uint64(time.Now().UnixNano())
	if s := os.Getenv("SURECALL_CRASH_KILLS"); s != "" {
		kills, _ = strconv.Atoi(s)
	}
	if s := os.Getenv("SURECALL_CRASH_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("SURECALL_CRASH_SEED=%d", seed)
	b := newBank(seed)
	t.Cleanup(func() { b.Close(); http.DefaultClient.CloseIdleConnections() })
	path := ledgerFile(t)
	intents := batch
	for killed := 0; killed < kills; {
		while := time.Duration(b.chance(40_000)) * time.Microsecond
		if b.live(t, path, while, b.chance(5) == 0) {
			killed++
			continue
		}
		b.next(intents, batch)
		intents += batch
	}
	b.next(0, intents)
	b.live(t, path, -1, false)
	b.verify(t, path, intents, kills)
}

func (b *bank) verify(t *testing.T, path string, intents, kills int) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	count := map[string]int{}
	for i := range intents {
		ended, effects := b.ended[i], b.effects[i]
		kind := ended
		switch {
		case ended == fmt.Sprintf("receipt 1 of %d", i) && effects == 1:
			kind = "receipt"
		case ended == "refused" && effects == 0, ended == "unknown" && effects <= 1:
		default:
			t.Errorf("intent %d ended as %q with %d effects", i, ended, effects)
		}
		count[fmt.Sprintf("%s, %d effects", kind, effects)]++
	}
	t.Logf("%d kills, %d intents: %v", kills, intents, count)
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
