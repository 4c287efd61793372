package middlewaretest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Tool is one tool of the server.
type Tool struct {
	// Name is required.
	Name        string
	Description string
	// InputSchema is a JSON Schema; nil means any object. Properties with
	// "x-mcp-header" make a 2026-07-28 server insist on the matching Mcp-Param-*
	// headers, and refuse a call without them with -32020.
	InputSchema json.RawMessage
	// Annotations as in the specification: readOnlyHint and so on.
	Annotations map[string]any
	// Keyed makes the tool run once for each idempotency key, and answer further
	// calls with the same key from its store.
	Keyed bool
	// Ask, if not empty, is a question that the user has to answer before the tool
	// runs; a refusal ends the call with an isError result.
	Ask string
	// AskURL makes the question one of mode "url" with this address.
	AskURL string
	// AskField makes the form ask for a text of this name, in place of a yes or
	// no. A call that has it among its arguments is not asked.
	AskField string
	// RefusalIsFine ends a refused call with a plain result.
	RefusalIsFine bool
	// Streams makes the answer an event stream, which [Call.Progress] needs.
	Streams bool
	// Run is what the tool does; nil answers with a short text. It must be safe
	// for concurrent use. Its context ends with the server, not with the request:
	// a tool that runs does not notice that the client has gone.
	Run func(ctx context.Context, c Call) Result
}

// A Call is what a tool is called with.
type Call struct {
	Tool      string
	Arguments json.RawMessage
	// Key is the idempotency key, from _meta, else the header Idempotency-Key,
	// else the argument idempotency_key.
	Key string
	// Progress sends a progress notification where the client asked for them;
	// otherwise it does nothing. Never nil. It must not be called after Run has
	// returned.
	Progress func(done, total int)
}

// Arg decodes one argument into v and leaves v alone if that cannot be done.
func (c Call) Arg(name string, v any) {
	var all map[string]json.RawMessage
	if json.Unmarshal(c.Arguments, &all) == nil {
		_ = json.Unmarshal(all[name], v)
	}
}

// A Result is what a tool answers.
type Result struct {
	// Text becomes the one text block of the result.
	Text    string
	IsError bool
	// Raw, if not nil, is the whole result object in place of the above.
	Raw json.RawMessage
}

// SetTool adds a tool or replaces one of the same name, from the next request
// on. Clients are not told; see [Server.NotifyToolsChanged].
func (s *Server) SetTool(t Tool) { s.tools.set(t) }

// RemoveTool takes a tool out of the list. It stays callable, as every name is.
func (s *Server) RemoveTool(name string) { s.tools.remove(name) }

// A toolbox holds the tools in the order of their listing.
type toolbox struct {
	mu    sync.RWMutex
	tools []Tool
}

func newToolbox(extra []Tool) *toolbox {
	b := &toolbox{tools: builtinTools()}
	for _, t := range extra {
		b.set(t)
	}
	return b
}

func (b *toolbox) set(t Tool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.IndexFunc(b.tools, func(o Tool) bool { return o.Name == t.Name }); i >= 0 {
		b.tools[i] = t
		return
	}
	b.tools = append(b.tools, t)
}

func (b *toolbox) remove(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tools = slices.DeleteFunc(b.tools, func(t Tool) bool { return t.Name == name })
}

// get returns the tool of that name, or one that only says its name: every name
// is callable.
func (b *toolbox) get(name string) Tool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, t := range b.tools {
		if t.Name == name {
			return t
		}
	}
	return Tool{Name: name}
}

func (b *toolbox) all() []Tool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Clone(b.tools)
}

// describe renders a tool for tools/list.
func (t *Tool) describe() map[string]any {
	d := map[string]any{"name": t.Name, "inputSchema": t.schema()}
	if t.Description != "" {
		d["description"] = t.Description
	}
	if len(t.Annotations) > 0 {
		d["annotations"] = t.Annotations
	}
	return d
}

func (t *Tool) schema() json.RawMessage {
	if len(t.InputSchema) == 0 {
		return json.RawMessage(`{"type":"object"}`)
	}
	return t.InputSchema
}

// run calls the tool.
func (t *Tool) run(ctx context.Context, c Call) Result {
	if t.Run == nil {
		return Result{Text: t.Name + " done"}
	}
	return t.Run(ctx, c)
}

// render makes the result object of a tools/call of a protocol version.
func (r Result) render(stateless bool) json.RawMessage {
	if r.Raw != nil {
		return r.Raw
	}
	b := []byte("{")
	if stateless {
		b = append(b, `"resultType":"complete",`...)
	}
	b = append(b, `"content":[{"type":"text","text":`...)
	b = append(append(b, quote(r.Text)...), `}]`...)
	if r.IsError {
		b = append(b, `,"isError":true`...)
	}
	return append(b, '}')
}

const (
	maxSlow = 10 * time.Minute
	maxBig  = 256 << 20
)

// builtinTools are the tools of every server. Each of their executions counts as
// an effect.
func builtinTools() []Tool {
	return []Tool{
		{
			Name: "read_weather", Description: "Reads the weather of a city. Changes nothing.",
			InputSchema: schema(`"city":{"type":"string"}`),
			Annotations: map[string]any{"readOnlyHint": true},
			Run: func(_ context.Context, c Call) Result {
				city := "Lisbon"
				c.Arg("city", &city)
				return Result{Text: city + ": 21 C, clear"}
			},
		},
		{
			Name: "set_label", Description: "Sets the label of an item. Setting it again changes nothing more.",
			InputSchema: schema(`"id":{"type":"string"},"label":{"type":"string"}`),
			Annotations: map[string]any{"idempotentHint": true, "destructiveHint": false},
		},
		{
			Name: "pay", Description: "Pays an order. Every execution pays.",
			InputSchema: schema(`"order":{"type":"string"},"amount":{"type":"number"}`),
		},
		{
			Name: "pay_keyed", Description: "Pays an order, once for each idempotency key.",
			InputSchema: schema(`"order":{"type":"string"},"amount":{"type":"number"},"` + argumentKey + `":{"type":"string"}`),
			Keyed:       true,
		},
		{
			Name: "send_mail", Description: "Sends an e-mail. Every execution sends one.",
			InputSchema: schema(`"to":{"type":"string"},"subject":{"type":"string"}`),
		},
		{
			Name: "slow", Description: "Takes a number of milliseconds (50 if not given) and then has its effect.",
			InputSchema: schema(`"ms":{"type":"integer"}`),
			Run:         runSlow,
		},
		{
			Name: "big", Description: "Answers with a text of a number of bytes (1024 if not given).",
			InputSchema: schema(`"size":{"type":"integer"}`),
			Annotations: map[string]any{"readOnlyHint": true},
			Run:         runBig,
		},
		{
			Name: "fail", Description: "Fails with an isError result.",
			InputSchema: schema(`"message":{"type":"string"}`),
			Run: func(_ context.Context, c Call) Result {
				text := "the tool failed"
				c.Arg("message", &text)
				return Result{Text: text, IsError: true}
			},
		},
		{
			Name: "ask", Description: "Asks the user for approval and then has its effect.",
			InputSchema: schema(`"item":{"type":"string"}`),
			Ask:         "Go ahead?",
		},
		{
			Name: "progress", Description: "Reports progress in a number of steps (3 if not given) and then has its effect.",
			InputSchema: schema(`"steps":{"type":"integer"}`),
			Streams:     true,
			Run:         runProgress,
		},
	}
}

func schema(properties string) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{` + properties + `}}`)
}

func runSlow(ctx context.Context, c Call) Result {
	ms := 50
	c.Arg("ms", &ms)
	wait(ctx, min(time.Duration(max(ms, 0))*time.Millisecond, maxSlow))
	return Result{Text: "slow done"}
}

func runBig(_ context.Context, c Call) Result {
	size := 1024
	c.Arg("size", &size)
	return Result{Text: strings.Repeat("x", min(max(size, 0), maxBig))}
}

func runProgress(_ context.Context, c Call) Result {
	steps := 3
	c.Arg("steps", &steps)
	steps = min(max(steps, 0), 1000)
	for i := range steps {
		c.Progress(i+1, steps)
	}
	return Result{Text: "progress done"}
}

// wait returns after d, or when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
