package idempotency

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
)

// digest hashes parts under a domain. Each is preceded by its length, so that
// neither domain and part nor two parts can run into each other.
func digest(domain string, parts ...string) [sha256.Size]byte {
	b := make([]byte, 0, 256)
	b = appendPart(b, domain)
	for _, p := range parts {
		b = appendPart(b, p)
	}
	return sha256.Sum256(b)
}

func appendPart[T string | []byte](b []byte, part T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(part))), part...)
}

// textLength is that of crypto/rand.Text: 26 letters of 5 bits, 130 bits in all.
const textLength = 26

// text is a digest in the alphabet of crypto/rand.Text (A-Z, 2-7), which needs no
// escaping in JSON, in an HTTP header or in a URL.
func text(sum [sha256.Size]byte) string {
	const bytes = (textLength*5 + 7) / 8
	var letters [(bytes + 4) / 5 * 8]byte
	base32.StdEncoding.Encode(letters[:], sum[:bytes])
	return string(letters[:textLength])
}
