package idempotency

import (
	"encoding/binary"
	"testing"
	"time"
)

// A store that cannot note what became of calls costs memory for as long as they are
// remembered, and no longer.
func TestLossesExpire(t *testing.T) {
	const retention = time.Hour
	f := newFlights(retention)
	start := time.Unix(1_700_000_000, 0)
	loss := func(minute int) *Entry {
		e := &Entry{Scope: "s", ID: "id", Changed: start.Add(time.Duration(minute) * time.Minute)}
		binary.BigEndian.PutUint64(e.Fingerprint[:], uint64(minute))
		return e
	}
	const minutes = 20_000
	for i := range minutes {
		f.lose(loss(i))
		if len(f.lost) > 2*someLosses {
			t.Fatalf("%d losses kept after %d", len(f.lost), i)
		}
	}
	for i := minutes - 60; i < minutes; i++ {
		if _, lost := f.isLost(loss(i)); !lost {
			t.Fatalf("the loss of minute %d of %d is forgotten", i, minutes)
		}
	}
	f.found(loss(minutes - 1))
	if _, lost := f.isLost(loss(minutes - 1)); lost {
		t.Error("a call that was written again is still lost")
	}
}
