package middleware

import (
	"io"
	"slices"
	"strings"
	"testing"
)

// TestLineReader: lines as they come, whatever their ends and however they are cut.
func TestLineReader(t *testing.T) {
	long := strings.Repeat("x", 3*lineBuffer)
	r := newLineReader(strings.NewReader("a\r\n\nb\n"+long+"\nc"), func([]byte) int64 { return 2 * lineBuffer })
	var got []string
	for {
		l, err := r.next()
		if l.tooLong {
			if len(l.data) > envelopePrefix || cap(l.data) > lineBuffer {
				t.Errorf("%d bytes of a line that is too long", cap(l.data))
			}
			l.data = []byte("too long")
		}
		got = append(got, string(l.data))
		if l.cut != (err != nil) {
			t.Errorf("cut %t, error %v", l.cut, err)
		}
		if err != nil {
			break
		}
	}
	if want := []string{"a", "", "b", "too long", "c"}; !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
}

// longLine is a line of n bytes, without an end.
type longLine struct{ n int }

func (e *longLine) Read(b []byte) (int, error) {
	if e.n -= len(b); e.n < 0 {
		return 0, io.EOF
	}
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

func TestLineReaderMemory(t *testing.T) {
	allocated := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			r := newLineReader(&longLine{n: 64 << 20}, func([]byte) int64 { return 1 << 20 })
			if l, err := r.next(); err != nil || !l.tooLong {
				b.Fatalf("%v, %t", err, l.tooLong)
			}
			if l, err := r.next(); err != io.EOF || len(l.data) > 0 {
				b.Fatalf("the rest: %v, %d bytes", err, len(l.data))
			}
		}
	}).AllocedBytesPerOp()
	if allocated == 0 || allocated > 8<<20 {
		t.Errorf("%d bytes for a line over a limit of %d", allocated, 1<<20)
	}
}
