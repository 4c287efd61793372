package middleware

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// gated is a writer that lets one write through for each token.
type gated struct {
	tokens chan struct{}
	begun  chan struct{}
	text   bytes.Buffer
}

func (g *gated) Write(b []byte) (int, error) {
	g.begun <- struct{}{}
	if _, ok := <-g.tokens; !ok {
		return 0, io.ErrClosedPipe
	}
	return g.text.Write(b)
}

func newGated() *gated { return &gated{tokens: make(chan struct{}), begun: make(chan struct{}, 100)} }

// TestOutboxWithdraws: a line that was not begun never leaves; one that was, leaves
// whole; the rest in order.
func TestOutboxWithdraws(t *testing.T) {
	g := newGated()
	o := outbox{w: g}
	var parcels []*parcel
	for _, text := range []string{"a", "b", "c", "d"} {
		p := newParcel([]byte(text))
		if err := o.put(p); err != nil {
			t.Fatal(err)
		}
		parcels = append(parcels, p)
	}
	<-g.begun
	if o.withdraw(parcels[0]) {
		t.Error("a line under way counts as not sent")
	}
	if !o.withdraw(parcels[1]) {
		t.Error("a line that was not begun counts as sent")
	}
	for range 3 {
		g.tokens <- struct{}{}
	}
	if err := <-parcels[3].done; err != nil || g.text.String() != "a\nc\nd\n" {
		t.Errorf("%v, wrote %q", err, g.text.String())
	}
}

// TestOutboxShuts: after an error nothing more is written, and what stood there was
// not sent.
func TestOutboxShuts(t *testing.T) {
	g := newGated()
	o := outbox{w: g}
	first, second := newParcel([]byte("a")), newParcel([]byte("b"))
	_, _ = o.put(first), o.put(second)
	close(g.tokens)
	for i, p := range []*parcel{first, second} {
		if err := <-p.done; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("line %d: %v", i, err)
		}
		if unsent := o.withdraw(p); unsent != (i == 1) {
			t.Errorf("line %d: not sent %t", i, unsent)
		}
	}
	if err := o.put(newParcel([]byte("c"))); !errors.Is(err, io.ErrClosedPipe) || len(g.begun) != 1 {
		t.Errorf("a later line: %v, %d writes", err, len(g.begun))
	}
}

// TestOutboxIsBounded: lines that nobody waits for do not pile up, and a line that
// somebody waits for still finds a place.
func TestOutboxIsBounded(t *testing.T) {
	g := newGated()
	o := outbox{w: g}
	refused := 0
	for range 3 * maxUnwaited {
		p := newParcel([]byte("n"))
		p.unwaited = true
		if errors.Is(o.put(p), errOutboxFull) {
			refused++
		}
	}
	if len(o.waiting) > maxUnwaited || refused < maxUnwaited {
		t.Errorf("%d lines, %d refused", len(o.waiting), refused)
	}
	last := newParcel([]byte("r"))
	if err := o.put(last); err != nil {
		t.Error(err)
	}
	o.shut(io.ErrClosedPipe)
	close(g.tokens)
	<-last.done
}
