package boltstore

import (
	"bytes"

	bolt "go.etcd.io/bbolt"

	"github.com/surecall/surecall/idempotency"
)

// check reads every entry, and sees that it can be found wherever it is looked for
// and that nothing else can.
func (t table) check() error {
	want := map[string]int{}
	for _, name := range [][]byte{records, names, equal, expiry} {
		if t.Bucket(name) == nil {
			return corrupt("it has no %s, so it is no ledger", name)
		}
	}
	err := t.Bucket(records).ForEach(func(number, record []byte) error {
		e, err := decode(record)
		if err != nil {
			return err
		}
		return t.checkEntry(number, e, want)
	})
	if err != nil {
		return err
	}
	for _, name := range [][]byte{names, equal, expiry} {
		if got := keys(t.Bucket(name)); got != want[string(name)] {
			return corrupt("%d %s where %d should be", got, name, want[string(name)])
		}
	}
	return nil
}

// checkEntry counts in want where the entry must be found.
func (t table) checkEntry(number []byte, e idempotency.Entry, want map[string]int) error {
	if len(number) != 8 {
		return corrupt("an entry has no number")
	}
	err := t.index(number, e, func(bucket, key, value []byte) error {
		want[string(bucket)]++
		k, v := t.Bucket(bucket).Cursor().Seek(key)
		if !bytes.Equal(k, key) || !bytes.Equal(v, value) {
			return corrupt("an entry is not in %s", bucket)
		}
		return nil
	})
	if e.ID == e.Key {
		want[string(names)]--
	}
	return err
}

func keys(b *bolt.Bucket) int {
	n, c := 0, b.Cursor()
	for k, _ := c.First(); k != nil; k, _ = c.Next() {
		n++
	}
	return n
}
