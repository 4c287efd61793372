// Package idempotency names calls: the key that lets a server recognise a repeat
// of the same call, and the fingerprint that lets us recognise one.
package idempotency
