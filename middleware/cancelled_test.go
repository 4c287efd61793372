package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
)

// TestLostCancellation: whatever becomes of the notifications/cancelled after a
// timeout, the session lives, and the call in flight beside it is answered.
func TestLostCancellation(t *testing.T) {
	another := middlewaretest.Status(http.StatusAccepted)
	another.Name, another.ChangeSession = "another session", true
	for _, f := range []middlewaretest.Fault{
		middlewaretest.Reset(), middlewaretest.Close(), middlewaretest.Hang(), another,
		middlewaretest.Status(401), middlewaretest.Status(403),
		middlewaretest.Body("login page", "text/html", "<html>"), middlewaretest.Body("malformed", "application/json", "{"),
	} {
		t.Run(f.Name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, so middlewaretest.Options) { checkCancellation(t, so, f) })
		})
	}
}

func checkCancellation(t *testing.T, so middlewaretest.Options, f middlewaretest.Fault) {
	server := middlewaretest.NewServer(&so)
	t.Cleanup(server.Close)
	started, release := make(chan bool), make(chan bool)
	server.SetTool(middlewaretest.Tool{Name: "beside", Run: func(context.Context, middlewaretest.Call) middlewaretest.Result {
		close(started)
		<-release
		return middlewaretest.Result{Text: "paid"}
	}})
	wire := &cancelWire{hangs: f.Ending == middlewaretest.EndSilent, seen: make(chan bool, 1)}
	cs := connectOver(t, server, wire)
	defer server.DropConnections() // so that what hangs ends before the session does

	beside := make(chan error, 1)
	go func() {
		_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "beside"})
		beside <- err
	}()
	<-started
	server.AlwaysMethod("notifications/cancelled", f)
	server.Script("pay", middlewaretest.Hang())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	var e *observe.Error
	if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "pay"}); !errors.As(err, &e) || e.Outcome != observe.Timeout {
		t.Errorf("the call that times out: %v", err)
	}
	<-wire.seen
	close(release)
	if err := <-beside; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "send_mail"}); err != nil {
		t.Errorf("a call afterwards: %v", err)
	}
	if n := server.Counts().Cancelled; n > 1 {
		t.Errorf("%d cancellations", n)
	}
}

// cancelWire tells when a notifications/cancelled has come to its end or, if it
// hangs, is on its way.
type cancelWire struct {
	http.Transport
	hangs bool
	seen  chan bool
}

func (w *cancelWire) RoundTrip(req *http.Request) (*http.Response, error) {
	switch cancels := isCancellation(req); {
	case cancels && w.hangs:
		w.seen <- true
	case cancels:
		defer func() { w.seen <- true }()
	}
	return w.Transport.RoundTrip(req)
}

func isCancellation(req *http.Request) bool {
	if req.GetBody == nil {
		return false
	}
	body, err := req.GetBody()
	if err != nil {
		return false
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	return err == nil && bytes.Contains(text, []byte(`"notifications/cancelled"`))
}

func connectOver(t *testing.T, server *middlewaretest.Server, base http.RoundTripper) *mcp.ClientSession {
	t.Helper()
	stack := middleware.New(nil)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	client.AddSendingMiddleware(stack.Middleware()...)
	hc := stack.HTTPClient(&http.Client{Transport: base})
	t.Cleanup(hc.CloseIdleConnections)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL(), HTTPClient: hc}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return cs
}
