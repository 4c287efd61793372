package boltstore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// bbolt trusts its file: a wrong page number makes it panic, fault, or recurse
// without end, and that in goroutines of its own, and a page that nothing points to
// any more is no error at all. So the file is read here first, by ordinary reads.
//
// The layout is that of file format 2, which bbolt has kept since its beginning.
// Numbers are in the machine's byte order. A file is a row of pages. Pages 0 and 1
// are meta pages, of which the one with the later transaction counts; it names the
// root of a tree, the page of free pages, and the number of pages. A page has a
// header: id 8 bytes, flags 2, count 2, overflow 4 (further pages that belong to
// it). A branch has elements of pos 4, key size 4, page 8; a leaf, flags 4, pos 4,
// key size 4, value size 4. pos counts from the element. A leaf's element with flag
// 1 is a bucket: root page 8, sequence 8, and if the root is 0 a page in place.

const (
	magic, format    = 0xED0CDAED, 2
	branchFlag       = 0x01
	leafFlag         = 0x02
	freeFlag         = 0x10
	bucketFlag       = 0x01
	headerSize       = 16
	elementSize      = 16
	bucketHeaderSize = 16
	metaSize         = 64
	manyFree         = 0xFFFF // the count is in the first element
)

var order = binary.NativeEndian

// A meta is what a meta page says.
type meta struct {
	pageSize    uint32
	root        uint64
	free        uint64
	pages       uint64
	transaction uint64
}

// A checker walks the pages of a file.
type checker struct {
	file io.ReaderAt
	meta
	seen []bool
	// last is the last key met in the tree, and low the least that the next may be.
	last, low []byte
}

// checkPages returns [ErrCorrupt] unless every page of the file is where it belongs,
// once, with its keys in order. The file must not be written meanwhile.
func checkPages(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	m, err := readMeta(f)
	if err != nil {
		return err
	}
	if m.pages < 4 || m.pages > uint64(info.Size())/uint64(m.pageSize) {
		return corrupt("it has %d bytes, but should have %d pages of %d: it was cut short", info.Size(), m.pages, m.pageSize)
	}
	c := &checker{file: f, meta: m, seen: make([]bool, m.pages)}
	c.seen[0], c.seen[1] = true, true
	if err := c.tree(m.root); err != nil {
		return err
	}
	if err := c.freePages(); err != nil {
		return err
	}
	for id, seen := range c.seen {
		if !seen {
			return corrupt("page %d is neither in use nor free", id)
		}
	}
	return nil
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
}

// readMeta returns the later of the two meta pages. Both must be sound: bbolt would
// take the earlier one if the later is not, and so forget what was written last.
func readMeta(f io.ReaderAt) (meta, error) {
	first, err := readMetaAt(f, 0, 0)
	if err != nil {
		return meta{}, err
	}
	second, err := readMetaAt(f, 1, int64(first.pageSize))
	if err != nil {
		return meta{}, err
	}
	if second.pageSize != first.pageSize {
		return meta{}, corrupt("its meta pages differ in page size")
	}
	if second.transaction > first.transaction {
		return second, nil
	}
	return first, nil
}

func readMetaAt(f io.ReaderAt, id uint64, offset int64) (meta, error) {
	page := make([]byte, headerSize+metaSize)
	if _, err := f.ReadAt(page, offset); err != nil {
		return meta{}, corrupt("a meta page cannot be read: %v", err)
	}
	b := page[headerSize:]
	if order.Uint64(page) != id || order.Uint32(b) != magic || order.Uint32(b[4:]) != format {
		return meta{}, corrupt("it is no bbolt file, or a meta page is not in its place")
	}
	h := fnv.New64a()
	h.Write(b[:metaSize-8])
	if h.Sum64() != order.Uint64(b[metaSize-8:]) {
		return meta{}, corrupt("the checksum of a meta page is wrong")
	}
	m := meta{
		pageSize: order.Uint32(b[8:]), root: order.Uint64(b[16:]), free: order.Uint64(b[32:]),
		pages: order.Uint64(b[40:]), transaction: order.Uint64(b[48:]),
	}
	if m.pageSize < 512 || m.pageSize > 1<<24 {
		return meta{}, corrupt("a page of %d bytes", m.pageSize)
	}
	return m, nil
}

// page reads a page that must not have been met before, with its overflow.
func (c *checker) page(id uint64) ([]byte, error) {
	if err := c.mark(id); err != nil {
		return nil, err
	}
	header := make([]byte, headerSize)
	if _, err := c.file.ReadAt(header, int64(id)*int64(c.pageSize)); err != nil {
		return nil, corrupt("page %d: %v", id, err)
	}
	overflow := uint64(order.Uint32(header[12:]))
	if order.Uint64(header) != id || overflow >= c.pages-id {
		return nil, corrupt("page %d says it is page %d with %d more", id, order.Uint64(header), overflow)
	}
	for i := range overflow {
		if err := c.mark(id + 1 + i); err != nil {
			return nil, err
		}
	}
	b := make([]byte, (overflow+1)*uint64(c.pageSize))
	if _, err := c.file.ReadAt(b, int64(id)*int64(c.pageSize)); err != nil {
		return nil, corrupt("page %d: %v", id, err)
	}
	return b, nil
}

func (c *checker) mark(id uint64) error {
	if id >= c.pages || c.seen[id] {
		return corrupt("page %d is used twice, or is none", id)
	}
	c.seen[id] = true
	return nil
}

// tree checks a bucket's tree.
func (c *checker) tree(root uint64) error {
	outer := *c
	c.last, c.low = nil, nil
	err := c.node(root)
	c.last, c.low = outer.last, outer.low
	return err
}

func (c *checker) node(id uint64) error {
	b, err := c.page(id)
	if err != nil {
		return err
	}
	switch order.Uint16(b[8:]) {
	case branchFlag:
		return c.branch(b)
	case leafFlag:
		return c.leaf(b)
	}
	return corrupt("page %d is no part of a tree", id)
}

func (c *checker) branch(b []byte) error {
	count := int(order.Uint16(b[10:]))
	if count == 0 {
		return corrupt("a branch without children")
	}
	for i := range count {
		e, err := element(b, i)
		if err != nil {
			return err
		}
		key, err := part(e, order.Uint32(e), order.Uint32(e[4:]))
		if err != nil {
			return err
		}
		// The first child is where all lower keys are looked for too.
		if i > 0 {
			if bytes.Compare(key, c.last) <= 0 {
				return corrupt("a branch out of order")
			}
			c.low = key
		}
		if err := c.node(order.Uint64(e[8:])); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) leaf(b []byte) error {
	for i := range int(order.Uint16(b[10:])) {
		e, err := element(b, i)
		if err != nil {
			return err
		}
		keySize, valueSize := order.Uint32(e[8:]), order.Uint32(e[12:])
		key, err := part(e, order.Uint32(e[4:]), keySize)
		if err != nil {
			return err
		}
		if c.last != nil && bytes.Compare(key, c.last) <= 0 || bytes.Compare(key, c.low) < 0 {
			return corrupt("a key out of order")
		}
		c.last = key
		if order.Uint32(e)&bucketFlag == 0 {
			if _, err := part(e, order.Uint32(e[4:]), keySize+valueSize); err != nil {
				return err
			}
			continue
		}
		value, err := part(e, order.Uint32(e[4:])+keySize, valueSize)
		if err != nil {
			return err
		}
		if err := c.bucket(value); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) bucket(value []byte) error {
	if len(value) < bucketHeaderSize {
		return corrupt("a bucket without a root")
	}
	if root := order.Uint64(value); root != 0 {
		return c.tree(root)
	}
	inline := value[bucketHeaderSize:]
	if len(inline) < headerSize || order.Uint16(inline[8:]) != leafFlag {
		return corrupt("a bucket without a page")
	}
	in := &checker{file: c.file, meta: c.meta, seen: c.seen}
	return in.leaf(inline)
}

// element returns the rest of a page from its nth element on.
func element(b []byte, n int) ([]byte, error) {
	at := headerSize + n*elementSize
	if at+elementSize > len(b) {
		return nil, corrupt("a page with more elements than it holds")
	}
	return b[at:], nil
}

// part returns what lies at a distance from an element.
func part(e []byte, pos, size uint32) ([]byte, error) {
	if uint64(pos)+uint64(size) > uint64(len(e)) {
		return nil, corrupt("an element beyond its page")
	}
	return e[pos : pos+size], nil
}

// freePages marks the pages that are free.
func (c *checker) freePages() error {
	b, err := c.page(c.free)
	if err != nil {
		return err
	}
	if order.Uint16(b[8:]) != freeFlag {
		return corrupt("page %d is not the page of free pages", c.free)
	}
	count, ids := uint64(order.Uint16(b[10:])), b[headerSize:]
	if count == manyFree {
		count, ids = order.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids)/8) {
		return corrupt("more free pages than their page holds")
	}
	for i := range count {
		if err := c.mark(order.Uint64(ids[8*i:])); err != nil {
			return err
		}
	}
	return nil
}
