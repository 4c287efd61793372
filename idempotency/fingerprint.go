package idempotency

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// A Fingerprint identifies what a call asks for: two calls with equal
// fingerprints ask the same server for the same thing. Its text form is
// hexadecimal.
type Fingerprint [sha256.Size]byte

// FingerprintOf hashes server, tool and the canonical form of the arguments, never
// _meta. Take it before a key is added to the arguments. nil, null and absent
// arguments are those of an empty object.
//
// The canonical form is that of RFC 8785 (JSON Canonicalization Scheme): order of
// members, white space, escapes and the spelling of a number make no difference.
// It departs from the scheme where that would take different calls for equal ones
// or fail:
//
//   - A number is compared exactly, not as the double nearest to it: 64-bit ids
//     beyond 2^53 stay apart.
//   - A member that occurs twice counts twice, in its order.
//   - Arguments with a string that is not Unicode count as they are written, byte for
//     byte. So do those that hold the replacement character U+FFFD, which cannot be
//     told from it.
//   - A bare value is as good as an object.
//
// It fails where the arguments cannot be marshaled to JSON, or are nested deeper
// than 10,000 levels: such a call cannot be recognised again, so do not send it.
func FingerprintOf(server, tool string, arguments any) (Fingerprint, error) {
	if raw, ok := arguments.(json.RawMessage); ok && len(raw) == 0 {
		arguments = nil
	}
	if o, ok := arguments.(map[string]any); ok && o != nil {
		form := plainForm{make([]byte, 0, 128)}
		if form.object(o, 0) {
			return fingerprint(canonically, server, tool, form.text), nil
		}
	}
	raw, err := json.Marshal(arguments)
	if err != nil {
		return Fingerprint{}, fmt.Errorf("fingerprint of tool %q: %w", tool, err)
	}
	if bytes.Equal(raw, []byte("null")) {
		raw = []byte("{}")
	}
	form, err := canonical(raw)
	switch err {
	case nil:
		return fingerprint(canonically, server, tool, form), nil
	case errVerbatim:
		return fingerprint(verbatim, server, tool, raw), nil
	}
	return Fingerprint{}, fmt.Errorf("fingerprint of tool %q: %w", tool, err)
}

// The domains of a fingerprint's digest.
const (
	canonically = "surecall fingerprint 1"
	verbatim    = "surecall verbatim fingerprint 1"
)

// fingerprint is [digest] of a server, a tool and arguments as bytes.
func fingerprint(domain, server, tool string, arguments []byte) Fingerprint {
	b := make([]byte, 0, 512)
	b = appendPart(appendPart(appendPart(b, domain), server), tool)
	return sha256.Sum256(appendPart(b, arguments))
}

func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// MarshalText implements [encoding.TextMarshaler].
func (f Fingerprint) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, f[:]), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (f *Fingerprint) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(f)) {
		return fmt.Errorf("a fingerprint has %d hexadecimal digits, not %d", hex.EncodedLen(len(f)), len(text))
	}
	_, err := hex.Decode(f[:], text)
	return err
}
