package middlewaretest

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"strconv"
	"testing"
)

// TestSplitFrames: error codes are put in wherever the server's writes end.
func TestSplitFrames(t *testing.T) {
	const body = "body"
	headers := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 0, 0, 1, frameHeaders, 0, 0, 0, 0, 5, 0x82)
	data := append([]byte{0, 0, 4, frameData, flagEndStream, 0, 0, 0, 5}, body...)
	rst := []byte{0, 0, 4, frameReset, 0, 0, 0, 0, 5, 0, 0, 0, http2InternalError}
	for size := 1; size <= len(rst); size++ {
		client, server := net.Pipe()
		c := newFramedConn(server)
		go func() { _, _ = client.Write(append(headers, data...)) }()
		if _, err := io.ReadFull(c, make([]byte, len(headers)+len(data))); err != nil {
			t.Fatal(err)
		}
		c.strike([]byte("another body"), EndProtocolError)
		c.strike([]byte(body), EndRefusedStream)
		go func() {
			for b := rst; len(b) > 0; b = b[min(size, len(b)):] {
				_, _ = c.Write(b[:min(size, len(b))])
			}
		}()
		got := make([]byte, len(rst))
		if _, err := io.ReadFull(client, got); err != nil {
			t.Fatal(err)
		}
		if got[12] != http2RefusedStream || rst[12] != http2InternalError {
			t.Errorf("in pieces of %d: code %d", size, got[12])
		}
		if len(c.codes) != 0 || len(c.bodies) != 0 {
			t.Errorf("left: %v, %v", c.codes, c.bodies)
		}
		_, _ = client.Close(), c.Close()
	}
}

func TestBounds(t *testing.T) {
	s := NewUnstarted(&Options{Version: Version20251125, Sessions: true})
	defer s.Close()
	for range maxSessions + 10 {
		sess := &session{id: rand.Text()}
		sess.life, sess.end = context.WithCancel(s.life)
		s.sessions.add(sess)
	}
	if n := s.Sessions(); n != maxSessions {
		t.Errorf("%d sessions", n)
	}
	for range maxReplays + 10 {
		s.replays.open(true)
	}
	if n := len(s.replays.known); n != maxReplays {
		t.Errorf("%d streams", n)
	}
	for range maxHeld + 10 {
		s.scripts.hold(Fault{}, 1)
	}
	if n := len(s.scripts.held); n > maxHeld {
		t.Errorf("%d held faults", n)
	}
	for i := range maxKeys {
		s.keys.claim(strconv.Itoa(i), nil)
	}
	if e := s.keys.once(t.Context(), Call{Tool: "t", Key: "new"}, nil); e.refusal == "" || len(s.keys.done) != maxKeys {
		t.Errorf("%d keys, %+v", len(s.keys.done), e)
	}
}
