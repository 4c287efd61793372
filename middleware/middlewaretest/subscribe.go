package middlewaretest

import (
	"encoding/json"
	"net/http"
	"sync"
)

// maxPending bounds the messages that wait for a slow subscriber; beyond it they
// are dropped.
const maxPending = 100

const toolsChanged = "notifications/tools/list_changed"

// NotifyToolsChanged tells every open standalone stream (2025-11-25) and every
// subscription (2026-07-28) that the list of tools has changed.
func (s *Server) NotifyToolsChanged() { s.subs.tell() }

// Subscribers returns the number of open standalone streams and subscriptions.
func (s *Server) Subscribers() int {
	s.subs.mu.Lock()
	defer s.subs.mu.Unlock()
	return len(s.subs.open)
}

// subscribers are the streams on which the server may speak by itself.
type subscribers struct {
	mu   sync.Mutex
	open map[chan struct{}]bool
}

func newSubscribers() *subscribers { return &subscribers{open: map[chan struct{}]bool{}} }

func (a *subscribers) join() chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := make(chan struct{}, maxPending)
	a.open[c] = true
	return c
}

func (a *subscribers) leave(c chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, c)
}

func (a *subscribers) tell() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.open {
		select {
		case c <- struct{}{}:
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
	news := x.s.subs.join()
	defer x.s.subs.leave(news)
	x.beginStream()
	x.forward(news, over, notification(toolsChanged, json.RawMessage(`{}`)))
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
	var news chan struct{}
	if p.Notifications.ToolsListChanged {
		news = x.s.subs.join()
		defer x.s.subs.leave(news)
	}
	x.beginStream()
	x.sendEvent("", notification("notifications/subscriptions/acknowledged",
		mustJSON(map[string]any{"_meta": meta, "notifications": p.Notifications})))
	x.forward(news, nil, notification(toolsChanged, mustJSON(map[string]any{"_meta": meta})))
}

// forward sends a message for each piece of news, until the client or the server
// ends it, or over is closed.
func (x *exchange) forward(news <-chan struct{}, over <-chan struct{}, message []byte) {
	for {
		select {
		case <-news:
			x.sendEvent("", message)
		case <-over:
			return
		case <-x.ctx.Done():
			panic(http.ErrAbortHandler)
		}
	}
}
