package middleware

import (
	"errors"
	"io"
	"slices"
	"sync"
)

// maxUnwaited is how many lines that nobody waits for may stand in an outbox: those
// of notifications, and of responses to the server's own requests.
const maxUnwaited = 256

var errOutboxFull = errors.New("the server does not read its input")

// An outbox writes lines to a server, one at a time and in their order. A server
// that does not read blocks the write, and half a line cannot be taken back; so the
// write has a goroutine of its own, and whoever waits may leave: a line that was not
// begun is withdrawn, which proves that it was never sent, and the one under way is
// finished when the server reads again. It is safe for concurrent use.
type outbox struct {
	w io.Writer

	mu       sync.Mutex
	waiting  []*parcel
	unwaited int // of those, the ones nobody waits for
	writing  bool
	err      error // nothing more is written
}

// A parcel is one line on its way out.
type parcel struct {
	line     []byte
	unwaited bool
	begun    bool       // a byte of it may have left; guarded by outbox.mu
	done     chan error // holds one error, or nil, when the parcel's way has ended
}

func newParcel(message []byte) *parcel {
	return &parcel{line: append(message, '\n'), done: make(chan error, 1)}
}

// put queues a parcel. One that nobody waits for is refused where too many stand
// there already.
func (o *outbox) put(p *parcel) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.err != nil:
		return o.err
	case p.unwaited && o.unwaited >= maxUnwaited:
		return errOutboxFull
	}
	if p.unwaited {
		o.unwaited++
	}
	o.waiting = append(o.waiting, p)
	if !o.writing {
		o.writing = true
		go o.write()
	}
	return nil
}

// write writes what stands there, until nothing does.
func (o *outbox) write() {
	for p := o.next(); p != nil; p = o.next() {
		_, err := o.w.Write(p.line)
		if err != nil {
			o.shut(err)
		}
		p.done <- err
	}
}

// next begins the next parcel, or ends the writing.
func (o *outbox) next() *parcel {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		o.writing = false
		return nil
	}
	p := o.waiting[0]
	o.drop(0)
	p.begun = true
	return p
}

// drop takes a parcel off the queue. o.mu is held.
func (o *outbox) drop(i int) {
	if o.waiting[i].unwaited {
		o.unwaited--
	}
	o.waiting = slices.Delete(o.waiting, i, i+1)
}

// withdraw takes a parcel back and reports whether not a byte of it has left, nor
// ever will.
func (o *outbox) withdraw(p *parcel) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := slices.Index(o.waiting, p); i >= 0 {
		o.drop(i)
	}
	return !p.begun
}

// shut lets nothing more be written: what stands there was not sent.
func (o *outbox) shut(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
	for _, p := range o.waiting {
		p.done <- o.err
	}
	o.waiting, o.unwaited = nil, 0
}
