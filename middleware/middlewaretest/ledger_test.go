package middlewaretest_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

func TestEntries(t *testing.T) {
	s := middlewaretest.NewServer(&middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true})
	defer s.Close()
	session := legacySession(t, s)
	s.Script("pay", middlewaretest.Status(503).Executed())
	send(t, s, session+"Idempotency-Key: \"k-1\"\r\nAuthorization: Bearer t\r\nX-Other: o\r\nMcp-Param-Region: eu\r\n",
		`{"jsonrpc":"2.0","id":"a-1","method":"tools/call","params":{"name":"pay","arguments":{"order":"o-1"},"_meta":{"io.github.surecall/idempotency-key":"k-2","traceparent":"00-x"}}}`)
	all := s.Entries()
	if len(all) != 2 {
		t.Fatalf("%d entries", len(all))
	}
	if e := all[0]; e.Method != "initialize" || e.Round != 0 || e.Tool != "" || e.Status != 200 {
		t.Errorf("first: %+v", e)
	}
	e := all[1]
	if e.HTTPMethod != "POST" || e.Path != "/mcp" || e.Method != "tools/call" || e.ID != `"a-1"` || e.Tool != "pay" ||
		e.Key != "k-2" || e.Round != 1 || e.Fault != "status-503-executed" || !e.Executed || e.Replayed || e.Status != 503 ||
		string(e.Arguments) != `{"order":"o-1"}` || string(e.Meta["traceparent"]) != `"00-x"` || e.Time.IsZero() {
		t.Errorf("call: %+v", e)
	}
	if "Mcp-Session-Id: "+e.Session+"\r\n" != session {
		t.Errorf("session %q, want %q", e.Session, session)
	}
	want := http.Header{
		"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}, "Mcp-Session-Id": {e.Session},
		"Idempotency-Key": {`"k-1"`}, "Authorization": {"Bearer t"}, "Mcp-Param-Region": {"eu"},
	}
	if !maps.EqualFunc(e.Header, want, slices.Equal) {
		t.Errorf("header %v, want %v", e.Header, want)
	}
}

func TestLedgerIsBounded(t *testing.T) {
	s := middlewaretest.NewServer(&middlewaretest.Options{MaxEntries: 3})
	defer s.Close()
	for i := range 5 {
		send(t, s, "", callBody(fmt.Sprintf("t%d", i), ""))
	}
	var tools []string
	for _, e := range s.Entries() {
		tools = append(tools, e.Tool)
	}
	if want := []string{"t2", "t3", "t4"}; !slices.Equal(tools, want) {
		t.Errorf("%v, want %v", tools, want)
	}
	if c := s.Counts(); c.Posts != 5 || c.Forgotten != 2 {
		t.Errorf("%+v", c)
	}
	if n := len(s.ByTool()); n != 3 {
		t.Errorf("numbers of %d tools", n)
	}
	send(t, s, "", callBody("pay", `"arguments":{"note":"`+strings.Repeat("x", 20_000)+`"},`))
	if e := s.Entries()[2]; e.Arguments != nil || e.Tool != "pay" {
		t.Errorf("kept %d bytes of arguments", len(e.Arguments))
	}
	s.Reset()
	if len(s.Entries()) != 0 || s.Posts("t4") != 0 || s.Effects("t4") != 0 || s.Counts() != (middlewaretest.Counts{}) {
		t.Errorf("not forgotten: %+v", s.Counts())
	}
}

func TestTools(t *testing.T) {
	s := middlewaretest.NewServer(&middlewaretest.Options{Tools: []middlewaretest.Tool{{Name: "pay", Description: "another"}}})
	defer s.Close()
	list := func() string {
		return string(send(t, s, "", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).body)
	}
	if l := list(); !strings.Contains(l, `"description":"another"`) || strings.Contains(l, "Every execution pays.") {
		t.Errorf("not replaced: %s", l)
	}
	s.RemoveTool("pay")
	if l := list(); strings.Contains(l, "another") {
		t.Errorf("still listed: %s", l)
	}
	if a := send(t, s, "", callBody("pay", "")); a.status != 200 || s.Effects("pay") != 1 {
		t.Errorf("not callable: %s", a.raw)
	}
	for tool, want := range map[string]string{"big": strings.Repeat("x", 30), "read_weather": "Oslo: 21 C", "fail": "no luck"} {
		a := send(t, s, "", callBody(tool, `"arguments":{"size":30,"city":"Oslo","message":"no luck"},`))
		if !strings.Contains(string(a.body), want) {
			t.Errorf("%s: %s", tool, a.body)
		}
	}
}

func TestCounts(t *testing.T) {
	s := middlewaretest.NewServer(&middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true})
	defer s.Close()
	session := legacySession(t, s)
	for _, method := range []string{"ping", "tools/list", "server/discover"} {
		send(t, s, session, `{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`)
	}
	send(t, s, session, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	exchange(t, s, patience, "GET", session, "")
	exchange(t, s, patience, "DELETE", session, "")
	want := middlewaretest.Counts{Requests: 7, Posts: 5, Gets: 1, Deletes: 1, Initializes: 1, Discovers: 1, Lists: 1, Pings: 1, Cancelled: 1}
	if got := s.Counts(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestEffectsBy(t *testing.T) {
	s := middlewaretest.NewServer(nil)
	defer s.Close()
	s.Script("pay", middlewaretest.Fault{}, middlewaretest.Status(503).Executed(), middlewaretest.Status(503), middlewaretest.Fault{})
	for _, args := range []string{`{"order":"a"}`, `{"order":"a"}`, `{"order":"b"}`, `{"order":7}`} {
		send(t, s, "", callBody("pay", `"arguments":`+args+`,`))
	}
	if got, want := s.EffectsByArg("pay", "order"), map[string]int{"a": 2, "7": 1}; !maps.Equal(got, want) {
		t.Errorf("by order: %v, want %v", got, want)
	}
	if got, want := s.EffectsByKey("pay"), map[string]int{"": 3}; !maps.Equal(got, want) {
		t.Errorf("by key: %v, want %v", got, want)
	}
	if got, want := s.ByTool()["pay"], (middlewaretest.ToolCounts{Posts: 4, Effects: 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
