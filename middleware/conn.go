package middleware

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// countedConn counts the bytes that were handed to the network, so that a request
// whose connection turned out to be dead can be proven unsent.
type countedConn struct {
	net.Conn

	mu     sync.Mutex
	n      int64
	sealed bool
}

// Write counts before it writes: a byte may have left even if Write fails.
func (c *countedConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	if c.sealed {
		c.mu.Unlock()
		return 0, net.ErrClosed
	}
	c.n += int64(len(b))
	c.mu.Unlock()
	return c.Conn.Write(b)
}

func (c *countedConn) written() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// seal reports whether nothing was written since mark, and if so lets nothing be
// written from now on: the proof holds for good, whatever a goroutine of
// net/http still has in hand.
func (c *countedConn) seal(mark int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sealed = c.sealed || c.n == mark
	return c.n == mark
}

// newBase returns a transport like http.DefaultTransport over counted
// connections.
func newBase() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &countedConn{Conn: conn}, nil
	}
	return t
}
