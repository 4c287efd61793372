//go:build unix

package boltstore_test

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// lifetime is how long a payer may live, mostly from the time that it is ready.
func (c *campaign) lifetime() *lifetime {
	return &lifetime{
		fromStart: c.random.IntN(6) == 0,
		length:    time.Duration(c.random.Int64N(int64(longestLife))),
	}
}

type lifetime struct {
	fromStart bool
	length    time.Duration
}

// A life is one payer process.
type life struct {
	*testing.T
	campaign *campaign
	cmd      *exec.Cmd
	stderr   bytes.Buffer
	ready    chan struct{}
	over     chan struct{}
	other    []string // of its output

	point  point // the last one, and whose; both are read when it is over
	intent int
	phase  string // in which it was killed
}

func (c *campaign) begin(t *testing.T, o orders) *life {
	t.Helper()
	c.plan(2 * o.n)
	l := &life{T: t, campaign: c, cmd: child(t, c.role, c.path, o.String()), ready: make(chan struct{}), over: make(chan struct{})}
	l.cmd.Stderr = &l.stderr
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(l.over)
		l.other = readJournal(out, l.reached)
	}()
	return l
}

// reached takes in a line of the journal.
func (l *life) reached(p point, intent int, how string) {
	l.point, l.intent = p, intent
	switch p {
	case ready:
		close(l.ready)
	case ended:
		l.campaign.hear(intent, how)
	}
}

// endsAfter waits for the end of the process, which comes by force after a time if
// there is one; killed reports whether it did.
func (l *life) endsAfter(t *lifetime) (killed bool) {
	l.Helper()
	if t != nil && l.survives(t) {
		paid := l.campaign.payments()
		_ = l.cmd.Process.Signal(syscall.SIGKILL)
		<-l.over
		l.phase = phaseOf(l.point, paid[l.intent] > 0)
	}
	<-l.over
	err := l.cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil && len(l.other) == 0:
		return false
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
		return true
	}
	l.Fatalf("payer: %v\n%s%s", err, strings.Join(l.other, ""), l.stderr.String())
	return false
}

// survives reports whether the process is still alive after its time.
func (l *life) survives(t *lifetime) bool {
	if !t.fromStart {
		select {
		case <-l.ready:
		case <-l.over:
		}
	}
	select {
	case <-time.After(t.length):
		return true
	case <-l.over:
		return false
	}
}
