package middleware

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/surecall/surecall/policy"
)

// watchInterval is the time between two looks at a watched file.
const watchInterval = 2 * time.Second

// WatchOptions configure [Stack.WatchPolicy]. A nil pointer and the zero value mean
// the defaults. They are copied when they are taken.
type WatchOptions struct {
	// Interval is the time between two looks at the file. Default 2 s.
	Interval time.Duration
	// OnChange, if set, is told of each new policy that is in use from now on, and of
	// each fault that keeps the file from being taken: the policy is then nil and the one
	// in use stays. A fault is told once for as long as it stays the same. It is called on
	// the goroutine that watches, one call at a time; meanwhile nobody looks at the file.
	OnChange func(*policy.Policy, error)
	// Logger gets the same. Nil: nothing is logged.
	Logger *slog.Logger
}

// WatchPolicy takes the policy from a file (see [policy.Load]), and goes on looking at
// the file until ctx ends: a new content is taken by [Stack.SetPolicy]. The error is
// that of the first look; nothing has changed then, and nobody goes on looking. What
// SetPolicy is given meanwhile holds until the file changes. Watch one file at a time.
//
// It compares the content, and does not wait for events of the file system: an editor
// that puts another file in the place of this one, Kubernetes, which exchanges a
// directory behind a symbolic link, and network file systems are all the same to it. A
// content, or a fault, counts when two looks in a row have found it, so that a file is
// not taken half written, nor a gap reported between its end and its replacement; a change
// is therefore in use after one to two intervals. What is no valid policy, cannot be
// read, is no regular file or is gone changes nothing.
func (s *Stack) WatchPolicy(ctx context.Context, path string, opts *WatchOptions) error {
	w := &policyFile{stack: s, path: path}
	if opts != nil {
		w.opts = *opts
	}
	if w.opts.Interval <= 0 {
		w.opts.Interval = watchInterval
	}
	text, err := w.read()
	if err != nil {
		return err
	}
	if _, err := w.take(text); err != nil {
		return err
	}
	w.last = sightingOf(text, nil)
	w.known = w.last
	go w.watch(ctx)
	return nil
}

// policyFile is a file that is watched.
type policyFile struct {
	stack *Stack
	path  string
	opts  WatchOptions

	last  sighting // what the last look found
	known sighting // what was taken, or reported, last
	fault string   // that was reported last, and stands
}

// A sighting is what a look found: a content, or why there is none.
type sighting struct {
	content [sha256.Size]byte
	fault   string
}

func sightingOf(text []byte, err error) sighting {
	if err != nil {
		return sighting{fault: err.Error()}
	}
	return sighting{content: sha256.Sum256(text)}
}

// watch looks at the file until ctx ends.
func (w *policyFile) watch(ctx context.Context) {
	ticker := time.NewTicker(w.opts.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if ctx.Err() == nil {
			w.look()
		}
	}
}

// look takes or reports what it finds, if that is new and was there at the last look
// as well.
func (w *policyFile) look() {
	text, err := w.read()
	now := sightingOf(text, err)
	stands := now == w.last
	w.last = now
	if !stands || now == w.known {
		return
	}
	w.known = now
	var p *policy.Policy
	if err == nil {
		p, err = w.take(text)
	}
	w.report(p, err)
}

// read returns the text of the file. Opening what is no regular file could block for
// ever.
func (w *policyFile) read() ([]byte, error) {
	info, err := os.Stat(w.path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", w.path)
	}
	return policy.Read(w.path)
}

// take puts what the file holds into use.
func (w *policyFile) take(text []byte) (*policy.Policy, error) {
	p, err := policy.Parse(w.path, text)
	if err != nil {
		return nil, err
	}
	return p, w.stack.SetPolicy(p)
}

// report tells of a new policy, or of a fault that was not told yet.
func (w *policyFile) report(p *policy.Policy, err error) {
	before := w.fault
	w.fault = ""
	if err != nil {
		if w.fault = err.Error(); w.fault == before {
			return
		}
		p = nil
	}
	if w.opts.OnChange != nil {
		w.opts.OnChange(p, err)
	}
	switch l := w.opts.Logger; {
	case l == nil:
	case err != nil:
		l.Error("the policy file is not taken, and the policy in use stays", "file", w.path, "error", err)
	default:
		l.Info("the policy file is in use", "file", w.path)
	}
}
