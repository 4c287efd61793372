package boltstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

var (
	// ErrLocked says that another process, or another Store of this one, has the file
	// open.
	ErrLocked = errors.New("another process has it open")
	// ErrCorrupt says that the file is damaged, cut short, or not a ledger.
	ErrCorrupt = errors.New("damaged")
)

// Options configure [Open]. The zero value means the defaults.
type Options struct {
	// Timeout bounds the wait for a file that another process has open; 0 means one
	// second. A restarted process may have to wait until the old one is gone.
	Timeout time.Duration
}

// Open opens a ledger's file, or creates it, readable by its owner only. opts may
// be nil. It reads the whole file and returns [ErrCorrupt], wrapped, where anything
// is wrong with it: then some call that was made may not be in it, and only somebody
// who knows what was made can decide to begin a new file.
func Open(path string, opts *Options) (*Store, error) {
	timeout := time.Second
	if opts != nil && opts.Timeout > 0 {
		timeout = opts.Timeout
	}
	if err := create(path); err != nil {
		return nil, explain("creating", path, err)
	}
	if err := inspect(path, timeout); err != nil {
		return nil, explain("opening", path, err)
	}
	db, err := open(path, timeout)
	if err != nil {
		return nil, explain("opening", path, err)
	}
	return &Store{path: path, db: db, turn: make(chan struct{}, 1)}, nil
}

// create makes a file where there is none. It appears under its name once it is
// whole, so that a process that dies meanwhile leaves no half of one.
func create(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	f.Close()
	defer os.Remove(f.Name())
	if err := fill(f.Name()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDirectory(filepath.Dir(path))
}

// fill makes an empty file an empty ledger.
func fill(path string) error {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{records, names, equal, expiry} {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, db.Close())
}

// syncDirectory makes a file's name last.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// inspect checks the file page by page while a shared lock keeps writers away.
// Opened for reading, bbolt looks at nothing but its two meta pages.
func inspect(path string, timeout time.Duration) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() == 0 {
		return errors.Join(err, corrupt("it is empty"))
	}
	db, err := bolt.Open(path, 0, &bolt.Options{Timeout: timeout, ReadOnly: true})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return err
	case err != nil:
		return corrupt("%v", err)
	}
	return errors.Join(checkPages(f), db.Close())
}

// open opens a file whose pages are sound, and checks what they hold.
func open(path string, timeout time.Duration) (*bolt.DB, error) {
	var file *os.File
	var db *bolt.DB
	err := guarded(func() (err error) {
		db, err = bolt.Open(path, 0o600, &bolt.Options{
			Timeout: timeout,
			OpenFile: func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
				file, err = os.OpenFile(name, flag&^os.O_CREATE, mode)
				return file, err
			},
		})
		if err != nil {
			return err
		}
		return db.View(func(tx *bolt.Tx) error { return table{tx}.check() })
	})
	switch {
	case errors.Is(err, errPanic):
		file.Close() // which gives up the lock; bbolt may hold its own for ever
	case err != nil && db != nil:
		err = errors.Join(err, db.Close())
	}
	return db, err
}

// writing is what a store does most, and what a full disk stops.
const writing = "writing"

// explain says which file it is about, and what to do.
func explain(doing, path string, err error) error {
	advice := ""
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		err = ErrLocked
		advice = "; end that process, or give this one a file of its own"
	case errors.Is(err, ErrCorrupt):
		advice = "; calls that were made may be missing from it: restore it from a copy, or move it away once you know what became of them"
	case doing == writing:
		advice = "; see to the disk (room, quota, rights): until then no unsafe and no keyed call is sent"
	}
	return fmt.Errorf("%s the ledger file %s: %w%s", doing, path, err, advice)
}
