package idempotency

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/gowebpki/jcs"
)

// A Fingerprint identifies what a call asks for: two calls with equal
// fingerprints ask the same server for the same thing.
type Fingerprint [sha256.Size]byte

// FingerprintOf hashes server, tool and the canonical form of the arguments (JSON
// Canonicalization Scheme, RFC 8785), never _meta. It fails where the arguments
// cannot be marshaled to JSON.
func FingerprintOf(server, tool string, arguments any) (Fingerprint, error) {
	raw, err := json.Marshal(arguments)
	if err != nil {
		return Fingerprint{}, fmt.Errorf("fingerprint of tool %q: %w", tool, err)
	}
	canonical, err := jcs.Transform(raw)
	if err != nil {
		// The scheme covers objects and arrays; a bare value is canonical already.
		canonical = raw
	}
	h := sha256.New()
	for _, part := range [][]byte{[]byte(server), []byte(tool), canonical} {
		fmt.Fprintf(h, "%d:", len(part))
		h.Write(part)
	}
	return Fingerprint(h.Sum(nil)), nil
}
