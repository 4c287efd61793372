package middlewaretest

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"
)

// maxPending bounds the messages that wait for a slow subscriber; beyond it they
// are dropped.
const maxPending = 100

const toolsChanged = "notifications/tools/list_changed"

// NotifyToolsChanged tells every open standalone stream (2025-11-25) and every
// subscription (2026-07-28) that the list of tools has changed.
func (s *Server) NotifyToolsChanged() { s.subs.tell(news{}) }

// Broadcast writes text as it is on every open standalone stream and
// subscription, whether it is an event or not.
func (s *Server) Broadcast(text string) { s.subs.tell(news{text: text}) }

// EndStreams ends every open standalone stream and subscription.
func (s *Server) EndStreams() { s.subs.tell(news{end: true}) }

// news is what a subscriber is to do: say that the tools have changed, unless
// something else is said.
type news struct {
	text string
	end  bool
}

// Subscribers returns the number of open standalone streams and subscriptions.
func (s *Server) Subscribers() int {
	s.subs.mu.Lock()
	defer s.subs.mu.Unlock()
	return len(s.subs.open)
}

// subscribers are the streams on which the server may speak by itself.
type subscribers struct {
	mu   sync.Mutex
	open map[chan news]bool
}

func newSubscribers() *subscribers { return &subscribers{open: map[chan news]bool{}} }

func (a *subscribers) join() chan news {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := make(chan news, maxPending)
	a.open[c] = true
	return c
}

func (a *subscribers) leave(c chan news) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, c)
}

func (a *subscribers) tell(n news) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.open {
		select {
		case c <- n:
		default:
		}
	}
}

// standalone answers a GET that asks for the server's own stream.
func (x *exchange) standalone() {
	if !x.s.opts.StandaloneSSE {
		x.notAllowed()
		return
	}
	if !x.joinSession() {
		return
	}
	var over <-chan struct{}
	if x.session != nil {
		over = x.session.life.Done()
	}
	in := x.s.subs.join()
	defer x.s.subs.leave(in)
	x.beginStream()
	x.forward(in, over, notification(toolsChanged, json.RawMessage(`{}`)))
}

// listen answers subscriptions/listen, whose stream lasts as long as the client
// wants.
func (x *exchange) listen() {
	if !x.s.opts.stateless() {
		x.unknownMethod()
		return
	}
	var p struct {
		Notifications struct {
			ToolsListChanged bool `json:"toolsListChanged"`
		} `json:"notifications"`
	}
	_ = json.Unmarshal(orNull(x.msg.Params), &p)
	meta := map[string]any{metaSubscription: x.msg.ID}
	var in chan news
	if p.Notifications.ToolsListChanged {
		in = x.s.subs.join()
		defer x.s.subs.leave(in)
	}
	x.beginStream()
	x.sendEvent("", notification("notifications/subscriptions/acknowledged",
		mustJSON(map[string]any{"_meta": meta, "notifications": p.Notifications})))
	x.forward(in, nil, notification(toolsChanged, mustJSON(map[string]any{"_meta": meta})))
}

// forward writes what comes in, until the client or the server ends it, or over is
// closed.
func (x *exchange) forward(in <-chan news, over <-chan struct{}, changed []byte) {
	for {
		select {
		case n := <-in:
			switch {
			case n.end:
				return
			case n.text != "":
				_, _ = io.WriteString(x.w, n.text)
				x.flush()
			default:
				x.sendEvent("", changed)
			}
		case <-over:
			return
		case <-x.ctx.Done():
			panic(http.ErrAbortHandler)
		}
	}
}
