// Package boltstore keeps an [idempotency.Ledger]'s entries in one file that
// outlives the process, by bbolt (go.etcd.io/bbolt).
//
// Every write is on disk (fsync) before it returns, so a call is written down before
// its first byte leaves. One process holds the file; a second one is told so at
// once. A damaged file is never used: [Open] reads all of it before it trusts any
// of it, says what is wrong, and changes nothing.
//
// It is a module of its own, so that the core stays without bbolt.
package boltstore
