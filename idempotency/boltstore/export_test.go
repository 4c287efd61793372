package boltstore

import bolt "go.etcd.io/bbolt"

// Entries counts what the file holds, expired or not.
func Entries(s *Store) (n int) {
	_ = s.db.View(func(tx *bolt.Tx) error {
		n = keys(tx.Bucket(records))
		return nil
	})
	return n
}
