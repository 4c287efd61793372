package middlewaretest

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"sync"
)

// net/http's HTTP/2 server can reset a stream only with INTERNAL_ERROR, and
// cannot refuse one. A framedConn lies between it and the TLS connection, reads
// the frames that pass (RFC 9113, section 4.1), and puts another error code into
// a RST_STREAM or a GOAWAY frame before it.
//
// A handler does not learn the number of its stream. It knows the body, as the
// framedConn does: of streams with the same body, which are the same to a
// client, each gets one of their codes.

// HTTP/2 frame types, flags and error codes (RFC 9113, sections 6 and 7).
const (
	frameData    = 0x0
	frameHeaders = 0x1
	frameReset   = 0x3
	frameGoAway  = 0x7

	flagEndStream = 0x1
	flagPadded    = 0x8

	http2ProtocolError = 0x1
	http2InternalError = 0x2
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
	return newFramedConn(c), nil
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
	in frames // of the one reader

	writing sync.Mutex
	between *sync.Cond // a frame has been written whole, or writing has failed
	failed  bool
	out     frames
	code    [4]byte // of the RST_STREAM that is being written

	mu      sync.Mutex
	bodies  map[uint32]uint64   // hash of what each open stream has sent
	codes   map[uint64][]uint32 // with which streams of a body are to be reset
	highest uint32              // stream that the client has opened
	gone    bool                // GOAWAY was sent: nothing more is received
}

func newFramedConn(c net.Conn) *framedConn {
	f := &framedConn{Conn: c, bodies: map[uint32]uint64{}, codes: map[uint64][]uint32{}}
	f.between = sync.NewCond(&f.writing)
	f.in.skip = prefaceLen
	return f
}

func (c *framedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return 0, io.EOF
	}
	c.in.walk(p[:n], c.received)
	return n, err
}

// received follows the bodies of requests. c.mu is held.
func (c *framedConn) received(f *frames, payload []byte) {
	switch f.kind {
	case frameHeaders:
		c.highest = max(c.highest, f.stream)
	case frameData:
		if f.flags&flagPadded == 0 { // net/http does not pad
			c.bodies[f.stream] = hashMore(c.bodies[f.stream], payload)
		}
	case frameReset: // and so the server will send none
		body := c.bodies[f.stream]
		delete(c.bodies, f.stream)
		if !c.open(body) {
			delete(c.codes, body)
		}
	}
}

// open reports whether a stream with this body is open. c.mu is held.
func (c *framedConn) open(body uint64) bool {
	for _, b := range c.bodies {
		if b == body {
			return true
		}
	}
	return false
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

// sent puts the wanted code into a RST_STREAM. c.writing is held.
func (c *framedConn) sent(f *frames, payload []byte) {
	switch {
	case f.kind == frameReset:
		if f.at == 0 {
			binary.BigEndian.PutUint32(c.code[:], c.takeCode(f.stream, payload))
		}
		copy(payload, c.code[min(f.at, len(c.code)):])
	case f.flags&flagEndStream != 0 && (f.kind == frameData || f.kind == frameHeaders):
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.bodies, f.stream)
	}
}

// takeCode returns the code with which a stream is to be reset.
func (c *framedConn) takeCode(stream uint32, payload []byte) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	body, open := c.bodies[stream]
	delete(c.bodies, stream)
	codes := c.codes[body]
	if !open || len(codes) == 0 {
		return ownCode(payload)
	}
	if c.codes[body] = codes[1:]; len(codes) == 1 {
		delete(c.codes, body)
	}
	return codes[0]
}

// ownCode is the server's code; of a frame that is cut by the end of a write it
// is known to be INTERNAL_ERROR.
func ownCode(payload []byte) uint32 {
	if len(payload) < 4 {
		return http2InternalError
	}
	return binary.BigEndian.Uint32(payload)
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

// strike prepares what the client is to see when a stream with this body is
// reset.
func (c *framedConn) strike(body []byte, e Ending) {
	code := uint32(http2InternalError)
	switch {
	case e == EndProtocolError:
		code = http2ProtocolError
	case e == EndRefusedStream, e == EndGoAway && !c.goAway(hashMore(0, body)):
		code = http2RefusedStream
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if sum := hashMore(0, body); c.open(sum) {
		c.codes[sum] = append(c.codes[sum], code)
	}
}

// goAway tells the client that the stream with this body was not processed, and
// receives nothing after that. GOAWAY says so of all later streams too: if there
// are any, it does nothing and reports false.
func (c *framedConn) goAway(body uint64) bool {
	c.writing.Lock()
	defer c.writing.Unlock()
	for !c.out.between() && !c.failed {
		c.between.Wait()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone || c.bodies[c.highest] != body {
		return false
	}
	c.gone = true
	b := []byte{0, 0, 8, frameGoAway, 0, 0, 0, 0, 0}
	b = binary.BigEndian.AppendUint32(b, max(c.highest, 2)-2)
	b = binary.BigEndian.AppendUint32(b, 0) // NO_ERROR
	_, _ = c.Conn.Write(b)
	return true
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

// walk calls piece for each part of a payload in b, and once for a frame that has
// none.
func (f *frames) walk(b []byte, piece func(*frames, []byte)) {
	n := min(f.skip, len(b))
	f.skip -= n
	b = b[n:]
	for len(b) > 0 {
		if f.left > 0 {
			n = min(f.left, len(b))
			piece(f, b[:n])
			f.at += n
			f.left -= n
			b = b[n:]
			continue
		}
		n = min(frameHeaderLen-len(f.header), len(b))
		f.header = append(f.header, b[:n]...)
		b = b[n:]
		if len(f.header) == frameHeaderLen {
			f.begin()
			if f.left == 0 {
				piece(f, nil)
			}
		}
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
