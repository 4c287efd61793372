package observe_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/observe"
)

// sentinels are what frameworks look for before they run a call again.
var sentinels = []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, mcp.ErrConnectionClosed, mcp.ErrSessionMissing}

func TestErrorHidesItsCause(t *testing.T) {
	cause := errors.Join(append([]error{&jsonrpc.Error{Code: -32005, Message: "rejected by transport"}, &net.OpError{Op: "read"}}, sentinels...)...)
	for _, o := range observe.Outcomes() {
		e := observe.NewError(observe.Error{Outcome: o, Delivery: observe.Unknown}, cause, context.Canceled)
		for _, s := range sentinels {
			if errors.Is(e, s) {
				t.Errorf("%s shows %v", o, s)
			}
		}
		var rpc *jsonrpc.Error
		var op *net.OpError
		if errors.As(error(e), &rpc) || errors.As(error(e), &op) {
			t.Errorf("%s shows an error of the transport", o)
		}
		if !errors.Is(e, context.Canceled) || e.Cause() != cause {
			t.Errorf("%s: the caller's cancel or the cause is lost", o)
		}
	}
}

func TestErrorShowsSignalsWhereARepeatIsSafe(t *testing.T) {
	for _, s := range sentinels {
		e := observe.NewError(observe.Error{Outcome: observe.NetworkError, Delivery: observe.NotSent, RepeatSafe: true}, s, nil)
		if !errors.Is(e, s) {
			t.Errorf("%v is hidden", s)
		}
	}
	lost := observe.NewError(observe.Error{Outcome: observe.SessionLost, Delivery: observe.Refused, RepeatSafe: true}, nil, nil)
	if !errors.Is(lost, mcp.ErrSessionMissing) {
		t.Error("a lost session is hidden")
	}
}

func TestErrorText(t *testing.T) {
	e := observe.NewError(observe.Error{
		Outcome: observe.HTTPError, Delivery: observe.Unknown, Reason: "why", Tool: "pay", Status: 503, RetryAfter: 2 * time.Second,
		RPC: &observe.RPCError{Code: -32603, Message: "table locked, password=hunter22"},
	}, nil, nil)
	want := `surecall: tool "pay": HTTP_ERROR 503 -32603 "table locked, password=[redacted]": why; wait 2s; it may have taken effect, do not repeat without checking`
	if e.Error() != want {
		t.Errorf("got  %s\nwant %s", e.Error(), want)
	}
	var rpc *jsonrpc.Error
	if !errors.As(error(e), &rpc) || rpc.Code != -32603 {
		t.Error("the server's own error is hidden")
	}
}

// TestModelText: each text names the tool, and says whether the call may have taken
// effect and what to do.
func TestModelText(t *testing.T) {
	for _, o := range observe.Outcomes() {
		if o.Usable() && o != observe.InputRequired || o == observe.Blocked {
			continue
		}
		for delivery, want := range map[observe.Delivery]string{
			observe.NotSent: "was not sent", observe.Refused: "refused it", observe.Unknown: "It is not known whether it took effect",
			observe.Answered: "may have taken effect before that",
		} {
			e := &observe.Error{Outcome: o, Delivery: delivery, Tool: "pay", Safety: "unsafe", Status: 500}
			text := e.ModelText()
			if !strings.Contains(text, `"pay"`) || !strings.Contains(text, want) || strings.Contains(text, "it failed") || strings.Count(text, ". ") < 2 {
				t.Errorf("%s %s: %s", o, delivery, text)
			}
			if delivery == observe.Unknown && !strings.Contains(text, "Do not call it again before checking") {
				t.Errorf("%s %s does not say to check: %s", o, delivery, text)
			}
		}
	}
	held := (&observe.Error{Outcome: observe.Blocked, Delivery: observe.NotSent, Tool: "pay", Reason: "an equal call may have taken effect. Check first"}).ModelText()
	if held != `The call of the tool "pay" was held back: an equal call may have taken effect. Check first.` {
		t.Error(held)
	}
	for _, row := range []struct {
		healed, safe bool
		want         string
	}{
		{false, false, "most likely without running the tool. Calling it again at once"},
		{true, false, "has been renewed. The server refused it, most likely without running the tool. Check whether it took effect"},
		{true, true, "has been renewed. The server refused it without running the tool. It can be called again."},
	} {
		lost := &observe.Error{Outcome: observe.SessionLost, Delivery: observe.Refused, Tool: "pay", Healed: row.healed, RepeatSafe: row.safe}
		if text := lost.ModelText(); !strings.Contains(text, row.want) {
			t.Errorf("healed %t, safe %t: %s", row.healed, row.safe, text)
		}
	}
	wait := (&observe.Error{Outcome: observe.RateLimited, Delivery: observe.NotSent, Tool: "pay", RetryAfter: 1500 * time.Millisecond}).ModelText()
	if !strings.Contains(wait, "Wait 2 seconds") {
		t.Error(wait)
	}
}
