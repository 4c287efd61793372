package middlewaretest

import (
	"io"
	"log"
	"net"
	"net/http"
)

// discardLog keeps net/http from reporting what was done on purpose.
var discardLog = log.New(io.Discard, "", 0)

// finish does what follows the last byte of an answer.
func (x *exchange) finish(e Ending) {
	switch e {
	case EndComplete:
	case EndSilent:
		x.hang()
		panic(http.ErrAbortHandler)
	default:
		x.cut(e)
	}
}

// cut breaks the connection, or the stream on HTTP/2.
func (x *exchange) cut(e Ending) {
	if x.r.ProtoMajor >= 2 {
		x.cutStreamHTTP2(e)
	}
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp := tcpConn(conn); tcp != nil && (e == EndReset || e == EndProtocolError || e == EndRefusedStream) {
		_ = tcp.SetLinger(0) // close sends RST
		_ = tcp.Close()
	}
	_ = conn.Close()
}

// tcpConn finds the TCP connection below TLS; it is nil if there is none.
func tcpConn(c net.Conn) *net.TCPConn {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = t.NetConn()
	}
	tcp, _ := c.(*net.TCPConn)
	return tcp
}

// cutStreamHTTP2 resets the stream of the exchange. It does not return.
func (x *exchange) cutStreamHTTP2(e Ending) {
	if conn, ok := x.ctx.Value(framedKey{}).(*framedConn); ok {
		conn.strike(x.body, e)
	}
	panic(http.ErrAbortHandler)
}
