package idempotency

// A chain is a list of items, the one added first at its front. Its links are in the
// items, which can be in one chain of each kind.
type chain struct{ front, back *item }

// The kinds of chains.
const (
	byWrite = iota
	byAnswer
	byEqual
	byFailure
	chainKinds
)

type links struct{ before, after *item }

func (c *chain) add(it *item, kind int) {
	it.links[kind] = links{before: c.back}
	if c.back == nil {
		c.front = it
	} else {
		c.back.links[kind].after = it
	}
	c.back = it
}

func (c *chain) remove(it *item, kind int) {
	l := it.links[kind]
	if l.before == nil {
		c.front = l.after
	} else {
		l.before.links[kind].after = l.after
	}
	if l.after == nil {
		c.back = l.before
	} else {
		l.after.links[kind].before = l.before
	}
	it.links[kind] = links{}
}
