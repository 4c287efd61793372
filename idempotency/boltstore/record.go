package boltstore

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"time"

	"github.com/surecall/surecall/idempotency"
)

// castagnoli is the polynomial that most processors compute.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode gives an entry as a record: a checksum of four bytes and JSON. bbolt has
// checksums for its own two pages only, and a flipped bit must not turn unknown into
// completed.
func encode(e idempotency.Entry) ([]byte, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	sum := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), crc32.Checksum(body, castagnoli))
	return append(sum, body...), nil
}

func decode(record []byte) (idempotency.Entry, error) {
	var e idempotency.Entry
	if len(record) < 4 || binary.BigEndian.Uint32(record) != crc32.Checksum(record[4:], castagnoli) {
		return e, corrupt("the checksum of an entry is wrong")
	}
	if err := json.Unmarshal(record[4:], &e); err != nil {
		return e, corrupt("an entry is no JSON: %v", err)
	}
	return e, nil
}

// nameKey has a length of its own, whatever the name: bbolt's keys are bounded.
func nameKey(scope, name string) []byte {
	h := sha256.New()
	h.Write(binary.AppendUvarint(nil, uint64(len(scope))))
	h.Write([]byte(scope))
	h.Write([]byte(name))
	return h.Sum(nil)
}

func equalPrefix(scope string, f idempotency.Fingerprint) []byte {
	h := sha256.Sum256([]byte(scope))
	return append(h[:], f[:]...)
}

// timeKey orders as the time does. Before 1970 is not a time for this.
func timeKey(t time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(max(t.UnixNano(), 0)))
}
