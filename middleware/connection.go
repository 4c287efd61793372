package middleware

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// A connection carries a session over a pair of byte streams, one message a line
// (MCP, stdio transport). It is to such a session what the [Transport] is to one over
// HTTP: it keeps the evidence of each request, and keeps a line that is no usable
// answer from hanging a call or ending the session. The SDK's own connection stops
// reading for good at the first line that it cannot decode, drops an answer under a
// wrong id, and blocks a call beyond its deadline, and the end of the session with
// it, for as long as the server does not read (go-sdk v1.8.0).
type connection struct {
	core  *core
	out   outbox
	calls inflight
	// requests of the server that wait for the client
	requests serverRequests
	alarm    alarm
	pipe     io.Closer

	in      chan jsonrpc.Message
	closing chan struct{}
	ended   chan struct{} // closed when nothing more is read, with
	err     error         // why

	closeOnce sync.Once
	closeErr  error
}

// newConnection starts reading lines from r. pipe ends both streams.
func newConnection(c *core, r io.Reader, w io.Writer, pipe io.Closer) *connection {
	if c == nil {
		c = newCore(nil)
	}
	conn := &connection{
		core: c, out: outbox{w: w}, pipe: pipe,
		in: make(chan jsonrpc.Message), closing: make(chan struct{}), ended: make(chan struct{}),
	}
	go conn.read(newLineReader(r, conn.maxLine))
	return conn
}

// SessionID is empty: such a session has no id.
func (c *connection) SessionID() string { return "" }

// Close ends the streams, and the server behind them. A write under way does not hold
// it up.
func (c *connection) Close() error {
	c.closeOnce.Do(func() {
		close(c.closing)
		c.out.shut(io.ErrClosedPipe)
		c.closeErr = c.pipe.Close()
	})
	return c.closeErr
}

// Read returns the next message for the SDK.
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.in:
		return m, nil
	case <-c.ended:
		return nil, c.err
	case <-c.closing:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// deliver hands a message to the SDK. After Close the output is still read, so that
// the server can finish writing and end by itself.
func (c *connection) deliver(m jsonrpc.Message) {
	select {
	case c.in <- m:
	case <-c.closing:
	}
}

// Write sends a message. For a request it comes back when the request was written, or
// when its context or a limit has ended; nobody waits for anything else.
func (c *connection) Write(ctx context.Context, msg jsonrpc.Message) error {
	if m, ok := msg.(*jsonrpc.Request); ok && m.IsCall() {
		return c.request(ctx, m)
	}
	c.answered(msg)
	text, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return rejected(err)
	}
	p := newParcel(text)
	p.unwaited = true
	if err = c.out.put(p); err == errOutboxFull {
		return rejected(err)
	}
	return err
}

// rejected marks an error that concerns one message, so that the SDK keeps the session
// (go-sdk v1.8.0 compares by code).
func rejected(err error) error {
	return fmt.Errorf("%w: %w", &jsonrpc.Error{Code: codeRejected, Message: "rejected"}, err)
}

const codeRejected = -32005

// request sends a request and keeps its evidence until it is answered.
func (c *connection) request(ctx context.Context, m *jsonrpc.Request) error {
	c.calls.issue(m.ID)
	if m.Method == "subscriptions/listen" {
		return c.listen(ctx, m)
	}
	if h := handshakeFrom(ctx); h != nil && isHandshake(m.Method) {
		h.pipe()
	}
	p := c.open(ctx, m)
	if err := p.post.admit(); err != nil {
		return rejected(err)
	}
	text, err := c.encode(p, m)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		p.post.broken(observe.NetworkError, "the request could not be written", err, true)
		p.post.end()
		return rejected(err)
	}
	p.parcel = newParcel(text)
	return c.send(p)
}

// open begins the evidence of a request.
func (c *connection) open(ctx context.Context, m *jsonrpc.Request) *pending {
	id, _ := json.Marshal(m.ID.Raw()) // an int64 or a string
	p := &post{
		envelope: envelope{kind: observe.KindRequest, id: string(id), method: m.Method},
		ctx:      ctx,
		peer:     c,
		version:  c.calls.protocol(),
		body: func() (io.ReadCloser, error) {
			text, err := jsonrpc.EncodeMessage(m)
			return io.NopCloser(bytes.NewReader(text)), err
		},
	}
	p.join(c.core, func() *policy.Tool { return c.unknownTool(m) })
	p.watch.start(ctx, &c.alarm, p.tool.Limits)
	return &pending{post: p, id: m.ID}
}

// unknownTool is the policy for a request that no middleware has announced.
func (c *connection) unknownTool(m *jsonrpc.Request) *policy.Tool {
	var params struct {
		Name string `json:"name"`
	}
	if m.Method == methodCallTool {
		_ = json.Unmarshal(m.Params, &params)
	}
	return c.core.rules.Load().Resolve(c.core.opts.Server, params.Name, nil)
}

// encode is the text of a request, with the key of its round.
func (c *connection) encode(p *pending, m *jsonrpc.Request) ([]byte, error) {
	dressed := *m
	if p.post.isCall() {
		dressed.Params = p.post.evidence.keys.params(m.Params, p.post.round)
	}
	return jsonrpc.EncodeMessage(&dressed)
}

// send queues a request and waits until it was written.
func (c *connection) send(p *pending) error {
	p.post.watch.sending()
	p.post.watch.connected() // of the phases' limits none applies here: that of the attempt does
	if err := c.calls.add(p); err != nil {
		c.fail(p, err, true)
		return err
	}
	if err := c.out.put(p.parcel); err != nil {
		if c.calls.take(p) {
			c.fail(p, err, true)
		}
		return err
	}
	context.AfterFunc(p.post.watch.ctx, func() { c.giveUp(p) })
	select {
	case err := <-p.parcel.done:
		if err != nil && c.calls.take(p) {
			c.fail(p, err, c.out.withdraw(p.parcel))
		}
		return err
	case <-p.post.watch.ctx.Done():
		return p.post.ctx.Err() // nil where it was answered meanwhile, or is by giveUp
	}
}

// listen sends the request that opens a subscription: its answer marks the end, and
// nobody waits for it.
func (c *connection) listen(ctx context.Context, m *jsonrpc.Request) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return rejected(err)
	}
	p := newParcel(text)
	if err := c.out.put(p); err != nil {
		return err
	}
	select {
	case err = <-p.done:
		return err
	case <-ctx.Done():
		c.out.withdraw(p)
		return ctx.Err()
	}
}

// giveUp ends a request because its context has ended, or a limit has. In the second
// case the SDK does not know: it gets an error in the place of the answer, and the
// server the cancellation that the SDK would send (MCP, cancellation).
func (c *connection) giveUp(p *pending) {
	if !c.calls.take(p) {
		return
	}
	unsent := c.out.withdraw(p.parcel)
	p.post.broken(observe.NetworkError, "the connection failed", context.Cause(p.post.watch.ctx), unsent)
	p.post.end()
	if p.post.ctx.Err() != nil {
		return
	}
	if !unsent && !isHandshake(p.post.envelope.method) { // which is never cancelled
		_ = c.Write(p.post.ctx, cancellation(p.id))
	}
	c.deliver(&jsonrpc.Response{ID: p.id, Error: p.post.err()})
}

func cancellation(id jsonrpc.ID) *jsonrpc.Request {
	params, _ := json.Marshal(map[string]any{"requestId": id.Raw(), "reason": "a limit of the client ran out"})
	return &jsonrpc.Request{Method: "notifications/cancelled", Params: params}
}

// fail ends a request because the connection did.
func (c *connection) fail(p *pending, err error, unsent bool) {
	p.post.update(func(s *observe.Post) { s.SessionEnded = true })
	p.post.broken(observe.NetworkError, "the connection to the server ended", err, unsent)
	p.post.end()
}

// end is the end of the server's output: whatever waits for an answer will not get it.
func (c *connection) end(err error) {
	c.calls.end(err)
	c.out.shut(err)
	for _, p := range c.calls.all() {
		if c.calls.take(p) {
			c.fail(p, err, c.out.withdraw(p.parcel))
		}
	}
	c.err = err
	close(c.ended)
}
