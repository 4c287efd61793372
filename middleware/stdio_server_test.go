package middleware_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

var stdioVersions = []string{"2025-11-25", "2026-07-28"}

// A lineServer speaks MCP over a pair of streams and does to each tools/call what the
// call's arguments say. Each call is an effect.
type lineServer struct {
	version string
	out     io.Writer
	effect  func(tool string)

	mu        sync.Mutex
	effects   map[string]int
	metas     []map[string]any              // of the calls
	cancelled []string                      // ids, as JSON
	held      string                        // id of the last call that got no answer
	mute      bool                          // nor gets one when the client answers a question
	noise     string                        // what is written before an answer, raw
	write     func(*lineRequest, io.Writer) // writes before an answer, where it is set
}

// orders are the arguments of a call. In a line, %id% stands for the call's id, and
// %held% for that of the last call that got no answer.
type orders struct {
	Say    []string `json:"say,omitempty"`    // lines before the answer
	Silent bool     `json:"silent,omitempty"` // no answer
	Mute   bool     `json:"mute,omitempty"`   // nor one when the client answers a question
	Ask    bool     `json:"ask,omitempty"`    // a question first, once
	Exit   bool     `json:"exit,omitempty"`
	Heir   bool     `json:"heir,omitempty"` // a process is left behind that holds the output
	Deaf   bool     `json:"deaf,omitempty"` // nothing is read from then on
	Shed   int      `json:"shed,omitempty"` // calls that are put off, before the answer
	Work   int      `json:"work,omitempty"` // steps of 50 ms with progress, before the answer
	Pad    string   `json:"pad,omitempty"`
}

func newLineServer(version string, out io.Writer) *lineServer {
	s := &lineServer{version: version, out: out, effects: map[string]int{}}
	s.effect = func(tool string) { s.effects[tool]++ }
	return s
}

type lineRequest struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name           string          `json:"name"`
		Meta           map[string]any  `json:"_meta"`
		Arguments      orders          `json:"arguments"`
		InputResponses json.RawMessage `json:"inputResponses"`
		RequestID      json.RawMessage `json:"requestId"`
	} `json:"params"`
}

func (s *lineServer) serve(in io.Reader) {
	lines := bufio.NewReader(in)
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var r lineRequest
		if json.Unmarshal(text, &r) != nil {
			continue
		}
		if !s.handle(&r) {
			select {} // deaf; a test that uses it ends the process
		}
	}
}

// handle reports whether the server goes on reading.
func (s *lineServer) handle(r *lineRequest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Method == "server/discover" && s.version >= "2026-07-28":
		s.answer(r, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
	case r.Method == "initialize" && s.version < "2026-07-28":
		s.answer(r, `{"protocolVersion":"`+s.version+`","capabilities":{"tools":{}},"serverInfo":{"name":"lines","version":"1"}}`)
	case r.Method == "tools/list":
		s.answer(r, `{"tools":[]}`)
	case r.Method == "tools/call":
		return s.call(r)
	case r.Method == "notifications/cancelled":
		s.cancelled = append(s.cancelled, string(r.Params.RequestID))
	case r.Method == "" && s.held != "" && !s.mute: // the client has answered
		s.answer(&lineRequest{ID: json.RawMessage(s.held)}, `{"content":[{"type":"text","text":"done"}]}`)
	case r.ID != nil && r.Method != "":
		s.say(r, `{"jsonrpc":"2.0","id":%id%,"error":{"code":-32601,"message":"no such method"}}`)
	}
	return true
}

func (s *lineServer) call(r *lineRequest) bool {
	o := r.Params.Arguments
	s.metas = append(s.metas, r.Params.Meta)
	if o.Ask && r.Params.InputResponses == nil {
		s.answer(r, `{"resultType":"input_required","requestState":"s","inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{}}}}}}`)
		return true
	}
	if len(s.metas) <= o.Shed {
		s.answer(r, fmt.Sprintf(`{"resultType":"input_required","requestState":"s%d","inputRequests":{}}`, len(s.metas)))
		return true
	}
	s.effect(r.Params.Name)
	for i := range o.Work {
		time.Sleep(50 * time.Millisecond)
		if token, _ := json.Marshal(r.Params.Meta["progressToken"]); string(token) != "null" {
			s.say(r, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, token, i))
		}
	}
	if s.write != nil {
		s.write(r, s.out)
	}
	if s.noise != "" {
		s.say(r, s.noise)
	}
	for _, text := range o.Say {
		s.say(r, text)
	}
	if o.Heir {
		heir := exec.Command("sleep", "8")
		heir.Stdout, heir.Stderr = os.Stdout, os.Stderr
		_ = heir.Start()
	}
	switch {
	case o.Exit:
		os.Exit(3)
	case o.Deaf:
		return false
	case o.Silent:
		s.held, s.mute = string(r.ID), o.Mute
	default:
		s.answer(r, `{"content":[{"type":"text","text":"done"}]}`)
	}
	return true
}

func (s *lineServer) answer(r *lineRequest, result string) {
	s.say(r, `{"jsonrpc":"2.0","id":%id%,"result":`+result+`}`)
}

func (s *lineServer) say(r *lineRequest, text string) {
	fill := strings.NewReplacer("%id%", string(r.ID), "%held%", s.held, "%ff%", "\xff") // JSON cannot carry the last
	fmt.Fprint(s.out, fill.Replace(text)+"\n")
}

func (s *lineServer) count(tool string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.effects[tool]
}

// interfere sets what is written before each answer to a call.
func (s *lineServer) interfere(noise string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noise = noise
}

// calls returns the _meta of each tools/call.
func (s *lineServer) calls() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.metas)
}

const lineServerEnv = "SURECALL_TEST_LINE_SERVER" // the version; and
const lineEffectsEnv = "SURECALL_TEST_EFFECTS"    // the file of effects

// runLineServer is the child process.
func runLineServer() {
	s := newLineServer(os.Getenv(lineServerEnv), os.Stdout)
	s.effect = func(tool string) {
		f, err := os.OpenFile(os.Getenv(lineEffectsEnv), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintln(f, tool)
			f.Close()
		}
	}
	if os.Getenv("SURECALL_TEST_STUBBORN") != "" {
		signal.Ignore(syscall.SIGTERM)
		defer time.Sleep(time.Minute)
	}
	s.serve(os.Stdin)
}

// child is a lineServer in a process of its own.
type child struct {
	*exec.Cmd
	file string
}

func newChild(t *testing.T, version string, env ...string) child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := child{exec.Command(exe), t.TempDir() + "/effects"}
	c.Env = append(append(os.Environ(), lineServerEnv+"="+version, lineEffectsEnv+"="+c.file), env...)
	c.Stderr = os.Stderr
	return c
}

func (c child) effects(tool string) int {
	text, _ := os.ReadFile(c.file)
	return strings.Count(string(text), tool+"\n")
}

// lineRig is a client over lines.
type lineRig struct {
	t       *testing.T
	session *mcp.ClientSession
	records chan *observe.Record
	asked   int
	thinks  time.Duration // how long the user takes to answer
}

// newLineRig connects a client over what transport makes of its stack.
func newLineRig(t *testing.T, version string, transport func(*middleware.Stack) mcp.Transport, rules ...policy.Rule) *lineRig {
	t.Helper()
	r := &lineRig{t: t, records: make(chan *observe.Record, 1000)}
	stack := middleware.New(&middleware.Options{
		Server:   "lines",
		Policy:   &policy.Policy{Rules: append(rules, classes()...)},
		OnRecord: checked(t, func(_ context.Context, rec *observe.Record) { r.records <- rec }),
	})
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			r.asked++
			time.Sleep(r.thinks)
			return &mcp.ElicitResult{Action: "accept"}, nil
		},
	})
	client.AddSendingMiddleware(stack.Middleware()...)
	cs, err := client.Connect(t.Context(), transport(stack), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.session = cs
	t.Cleanup(func() { _ = cs.Close() })
	if got := cs.InitializeResult().ProtocolVersion; got != version {
		t.Fatalf("the session speaks %s", got)
	}
	return r
}

// newPipeRig connects a client to a lineServer in this process.
func newPipeRig(t *testing.T, version string, rules ...policy.Rule) (*lineRig, *lineServer) {
	t.Helper()
	serverIn, clientOut := io.Pipe()
	clientIn, serverOut := io.Pipe()
	s := newLineServer(version, serverOut)
	go func() {
		s.serve(serverIn)
		serverOut.Close()
	}()
	return newLineRig(t, version, func(stack *middleware.Stack) mcp.Transport { return stack.IOTransport(clientIn, clientOut) }, rules...), s
}

// call calls a tool; every outcome must come well before the deadline.
func (r *lineRig) call(tool string, o orders, within time.Duration) (*mcp.CallToolResult, *observe.Record, error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), within)
	defer cancel()
	res, err := r.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: o})
	select {
	case rec := <-r.records:
		return res, rec, err
	case <-time.After(10 * time.Second):
		r.t.Fatal("no record")
		return nil, nil, nil
	}
}

// serves checks that the session still serves.
func (r *lineRig) serves() {
	r.t.Helper()
	if res, rec, err := r.call("read_after", orders{}, 20*time.Second); err != nil || rec.Outcome != observe.ToolSuccess || len(res.Content) != 1 {
		r.t.Errorf("the session does not serve: %v, %+v", err, rec)
	}
}

// onVersions runs a test on both protocol versions.
func onVersions(t *testing.T, test func(t *testing.T, version string)) {
	for _, version := range stdioVersions {
		t.Run(version, func(t *testing.T) { test(t, version) })
	}
}

// slowReader is a server's input that is not read while it is stopped.
type slowReader struct {
	io.Reader
	mu   sync.Mutex
	open chan struct{}
}

func (s *slowReader) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b[:min(len(b), 1000)])
	s.mu.Lock()
	open := s.open
	s.mu.Unlock()
	<-open
	return n, err
}

func (s *slowReader) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = make(chan struct{})
}

func (s *slowReader) goOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.open)
}
