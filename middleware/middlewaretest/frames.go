package middlewaretest

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"net"
	"net/http"
	"sync"
)

// net/http's HTTP/2 server can reset a stream only with INTERNAL_ERROR, and
// cannot refuse one. A framedConn lies between it and the TLS connection, reads
// the frames that pass (RFC 9113, section 4.1), and puts another error code into
// a RST_STREAM or a GOAWAY frame before it.

// HTTP/2 frame types, flags and error codes (RFC 9113, sections 6 and 7).
const (
	frameData   = 0x0
	frameReset  = 0x3
	frameGoAway = 0x7

	flagPadded = 0x8

	http2ProtocolError = 0x1
	http2RefusedStream = 0x7

	frameHeaderLen = 9
	prefaceLen     = 24
)

// framedListener hands out framedConns of a TLS listener.
type framedListener struct{ net.Listener }

func (l framedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	f := &framedConn{Conn: c, bodies: map[uint32]uint64{}, codes: map[uint32]uint32{}}
	f.between = sync.NewCond(&f.writing)
	f.in.skip = prefaceLen
	return f, nil
}

// useFrames makes an HTTP server speak HTTP/2 on framedConns.
func useFrames(h *http.Server, l net.Listener, config *tls.Config) net.Listener {
	h.Protocols = new(http.Protocols)
	h.Protocols.SetUnencryptedHTTP2(true)
	h.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, framedKey{}, c)
	}
	return framedListener{tls.NewListener(l, config)}
}

type framedKey struct{}

// A framedConn is one HTTP/2 connection, decrypted.
type framedConn struct {
	net.Conn
	in frames // used by the one reader

	writing sync.Mutex
	between *sync.Cond // a frame has been written whole, or writing has failed
	failed  bool
	out     frames

	mu     sync.Mutex
	bodies map[uint32]uint64 // hash of what each open stream has sent
	codes  map[uint32]uint32 // error codes with which streams are to be reset
}

func (c *framedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.walk(p[:n], c.received)
	return n, err
}

// received follows the bodies of requests.
func (c *framedConn) received(f *frames, payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch f.kind {
	case frameData:
		if f.flags&flagPadded == 0 { // net/http does not pad
			c.bodies[f.stream] = hashMore(c.bodies[f.stream], payload)
		}
	case frameReset:
		delete(c.bodies, f.stream)
	}
}

func (c *framedConn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	p = append([]byte(nil), p...) // the codes are written into it
	c.out.walk(p, c.sent)
	n, err := c.Conn.Write(p)
	c.failed = c.failed || err != nil
	c.between.Broadcast()
	return n, err
}

// Close also frees those that wait for a frame to end.
func (c *framedConn) Close() error {
	err := c.Conn.Close()
	c.writing.Lock()
	defer c.writing.Unlock()
	c.failed = true
	c.between.Broadcast()
	return err
}

// sent puts the wanted code into a RST_STREAM.
func (c *framedConn) sent(f *frames, payload []byte) {
	if f.kind != frameReset {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.bodies, f.stream)
	code, ok := c.codes[f.stream]
	if !ok {
		return
	}
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], code)
	copy(payload, b[f.at:])
	if f.at+len(payload) >= len(b) {
		delete(c.codes, f.stream)
	}
}

// stream finds the open stream that sent a body, and makes it the caller's: of
// several the oldest. It returns 0 if there is none.
func (c *framedConn) stream(body []byte) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found uint32
	want := hashMore(0, body)
	for id, h := range c.bodies {
		if h == want && (found == 0 || id < found) {
			found = id
		}
	}
	delete(c.bodies, found)
	return found
}

// resetWith makes the next RST_STREAM of a stream carry a code.
func (c *framedConn) resetWith(stream, code uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.codes[stream] = code
}

// goAway tells the client that streams from this one on were not processed, as
// soon as no frame is half written.
func (c *framedConn) goAway(stream uint32) {
	c.writing.Lock()
	defer c.writing.Unlock()
	for !c.out.between() && !c.failed {
		c.between.Wait()
	}
	b := []byte{0, 0, 8, frameGoAway, 0, 0, 0, 0, 0}
	b = binary.BigEndian.AppendUint32(b, max(stream, 2)-2)
	b = binary.BigEndian.AppendUint32(b, 0) // NO_ERROR
	_, _ = c.Conn.Write(b)
}

// frames reads the framing of one direction.
type frames struct {
	skip   int // bytes before the first frame
	header []byte
	kind   byte
	flags  byte
	stream uint32
	at     int // offset of the piece in the payload
	left   int // bytes of the payload that are to come
}

// between reports whether no frame has begun.
func (f *frames) between() bool { return f.skip == 0 && len(f.header) == 0 && f.left == 0 }

// walk calls piece for each part of a payload in b.
func (f *frames) walk(b []byte, piece func(*frames, []byte)) {
	n := min(f.skip, len(b))
	f.skip -= n
	b = b[n:]
	for len(b) > 0 {
		if f.left == 0 {
			n = min(frameHeaderLen-len(f.header), len(b))
			f.header = append(f.header, b[:n]...)
			b = b[n:]
			if len(f.header) == frameHeaderLen {
				f.begin()
			}
			continue
		}
		n = min(f.left, len(b))
		piece(f, b[:n])
		f.at += n
		f.left -= n
		b = b[n:]
	}
}

func (f *frames) begin() {
	h := f.header
	f.left, f.at = int(h[0])<<16|int(h[1])<<8|int(h[2]), 0
	f.kind, f.flags = h[3], h[4]
	f.stream = binary.BigEndian.Uint32(h[5:]) &^ (1 << 31)
	f.header = f.header[:0]
}

// hashMore goes on with the FNV-1a hash of a body; 0 begins one.
func hashMore(sum uint64, b []byte) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	if sum == 0 {
		sum = offset
	}
	for _, c := range b {
		sum = (sum ^ uint64(c)) * prime
	}
	return sum
}
