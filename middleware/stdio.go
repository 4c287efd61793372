package middleware

import (
	"context"
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An IOTransport is an [mcp.Transport] over a pair of byte streams, such as the pipes
// of a process, one message a line (MCP, stdio transport). It guards a session as the
// [Transport] does over HTTP: every call ends in the outcome that the same message has
// there; a broken line, a wrong id or a stray line of the server's log does not end
// the session; and a server that does not read holds neither a call beyond its
// deadline nor the session's Close. Make it with [Stack.IOTransport], or without the
// middlewares by its fields alone. It is for one Connect. In shadow mode it is the SDK's
// [mcp.IOTransport], which guards nothing.
type IOTransport struct {
	// Reader is the server's output. If it is an io.Closer, the session's Close closes
	// it; otherwise it must end when Writer is closed, or a goroutine goes on reading.
	Reader io.Reader
	// Writer is the server's input. Closing it must end a Write under way, as it does
	// with pipes and sockets.
	Writer io.WriteCloser

	core *core
}

// IOTransport returns a guarded transport over a pair of byte streams.
func (s *Stack) IOTransport(r io.Reader, w io.WriteCloser) *IOTransport {
	return &IOTransport{Reader: r, Writer: w, core: s.core}
}

// Connect implements [mcp.Transport].
func (t *IOTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	if t.Reader == nil || t.Writer == nil {
		return nil, errors.New("surecall: IOTransport: no Reader or no Writer")
	}
	if t.core.isShadow() {
		r, ok := t.Reader.(io.ReadCloser)
		if !ok {
			r = io.NopCloser(t.Reader)
		}
		return (&mcp.IOTransport{Reader: r, Writer: t.Writer}).Connect(ctx)
	}
	return newConnection(t.core, t.Reader, t.Writer, streams{t.Reader, t.Writer}), nil
}

// streams ends both streams of an IOTransport.
type streams struct {
	r io.Reader
	w io.WriteCloser
}

func (s streams) Close() error {
	err := s.w.Close()
	if c, ok := s.r.(io.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	return err
}
