package middleware_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// mirrored is a tool whose arguments travel in headers too.
func mirrored(properties string) middlewaretest.Tool {
	return middlewaretest.Tool{Name: "pay", InputSchema: json.RawMessage(`{"type":"object","properties":{` + properties + `}}`)}
}

const region = `"region":{"type":"string","x-mcp-header":%q}`

// TestHeaderMismatch: a call whose headers do not match the tool's definition is sent
// again once, with headers made from the definition as it is now.
func TestHeaderMismatch(t *testing.T) {
	for name, listed := range map[string]bool{"never listed": false, "listed before it changed": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, middlewaretest.Options{ListTTL: time.Hour})
			r.server.SetTool(mirrored(fmt.Sprintf(region, "Zone")))
			if listed {
				r.list(t)
			}
			r.server.SetTool(mirrored(fmt.Sprintf(region, "Region")))
			r.server.Reset()
			_, rec, err := r.callIn(t.Context(), "pay", map[string]any{"region": "us-west1"})
			if err != nil || len(rec.Attempts) != 2 || rec.Attempts[0].Delivery != observe.Refused || rec.Attempts[1].WaitMs != 0 {
				t.Errorf("err %v, record %+v", err, rec)
			}
			if r.server.Posts("pay") != 2 || r.server.Effects("pay") != 1 || r.server.Counts().Lists != 1 {
				t.Errorf("%d POSTs, %d effects, %d lists", r.server.Posts("pay"), r.server.Effects("pay"), r.server.Counts().Lists)
			}
			if _, rec, err = r.callIn(t.Context(), "pay", map[string]any{"region": "us-east1"}); err != nil || rec.PostCount != 1 {
				t.Errorf("the next call: err %v, record %+v", err, rec)
			}
			last := r.server.Entries()[len(r.server.Entries())-1]
			if last.Header.Get("Mcp-Param-Zone") != "" || last.Header.Get("Mcp-Param-Region") != "us-east1" {
				t.Errorf("headers %v", last.Header)
			}
		})
	}
}

// TestRefreshedDefinitionYields: once the SDK has the list again, its headers count.
func TestRefreshedDefinitionYields(t *testing.T) {
	r := newRig(t, middlewaretest.Options{})
	for i, header := range []string{"Region", "Zone"} {
		r.server.SetTool(mirrored(fmt.Sprintf(region, header)))
		if i > 0 {
			r.list(t)
		}
		r.server.Reset()
		_, rec, err := r.callIn(t.Context(), "pay", map[string]any{"region": "us-west1"})
		if err != nil || rec.PostCount != 2-i || r.server.Effects("pay") != 1 {
			t.Errorf("%s: err %v, record %+v", header, err, rec)
		}
	}
}

// TestParamHeaders: the values are encoded as the specification says; the server
// compares them with the arguments.
func TestParamHeaders(t *testing.T) {
	r := newRig(t, middlewaretest.Options{})
	r.server.SetTool(mirrored(`"text":{"type":"string","x-mcp-header":"Text"},
		"count":{"type":"integer","x-mcp-header":"Count"},
		"dry":{"type":"boolean","x-mcp-header":"Dry"},
		"where":{"type":"object","properties":{"zone":{"type":"string","x-mcp-header":"where-zone"}}},
		"plain":{"type":"string"}`))
	for i, c := range []struct {
		args map[string]any
		want map[string]string
	}{
		{map[string]any{"text": "us-west1", "plain": "x"}, map[string]string{"Text": "us-west1"}},
		{map[string]any{"text": "Hello, 世界"}, map[string]string{"Text": "=?base64?SGVsbG8sIOS4lueVjA==?="}},
		{map[string]any{"text": " padded "}, map[string]string{"Text": "=?base64?IHBhZGRlZCA=?="}},
		{map[string]any{"text": "line1\nline2"}, map[string]string{"Text": "=?base64?bGluZTEKbGluZTI=?="}},
		{map[string]any{"text": "=?base64?literal?="}, map[string]string{"Text": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="}},
		{map[string]any{"text": nil, "count": 42, "dry": false}, map[string]string{"Count": "42", "Dry": "false"}},
		{map[string]any{"count": -7.0, "dry": true}, map[string]string{"Count": "-7", "Dry": "true"}},
		{map[string]any{"count": 1<<53 - 1, "where": map[string]any{"zone": "z"}}, map[string]string{"Count": "9007199254740991", "Where-Zone": "z"}},
	} {
		_, rec, err := r.callIn(t.Context(), "pay", c.args)
		if err != nil || (len(rec.Attempts) == 1) != (i > 0) {
			t.Errorf("%v: err %v, record %+v", c.args, err, rec)
		}
		last := r.server.Entries()[len(r.server.Entries())-1]
		for _, name := range []string{"Text", "Count", "Dry", "Where-Zone"} {
			if got := last.Header.Get("Mcp-Param-" + name); got != c.want[name] {
				t.Errorf("%v: %s is %q, want %q", c.args, name, got, c.want[name])
			}
		}
	}
}

// TestMismatchStops: what is not cured is not sent again, and an unsafe call only where
// the error is certainly about it.
func TestMismatchStops(t *testing.T) {
	const mismatch = -32020
	echoed := middlewaretest.StatusError(http.StatusBadRequest, mismatch, "header mismatch")
	nobodys := echoed
	nobodys.Body = `{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"header mismatch"}}`
	reads := policy.Rule{Tool: "pay", Settings: policy.Settings{Safety: policy.ReadOnly}}
	for name, c := range map[string]struct {
		so           middlewaretest.Options
		rules        []policy.Rule
		faults       []middlewaretest.Fault
		schema       string
		list         middlewaretest.Fault
		posts, lists int
		cured        bool
	}{
		"again":                  {faults: []middlewaretest.Fault{echoed, echoed}, posts: 2, lists: 1},
		"once":                   {faults: []middlewaretest.Fault{echoed}, posts: 2, lists: 1, cured: true},
		"unsafe, no id":          {faults: []middlewaretest.Fault{nobodys}, posts: 1},
		"read_only, no id":       {faults: []middlewaretest.Fault{nobodys}, rules: []policy.Rule{reads}, posts: 2, lists: 1, cured: true},
		"no list":                {faults: []middlewaretest.Fault{echoed}, list: middlewaretest.Status(400), posts: 1, lists: 1},
		"a definition to reject": {faults: []middlewaretest.Fault{echoed}, schema: `"x":{"type":"number","x-mcp-header":"X"}`, posts: 1, lists: 1},
		"no repeats":             {faults: []middlewaretest.Fault{echoed}, rules: []policy.Rule{never}, posts: 1, lists: 1},
		"2025-11-25": {so: middlewaretest.Options{Version: middlewaretest.Version20251125, Sessions: true},
			faults: []middlewaretest.Fault{echoed}, posts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.so, c.rules...)
			r.server.SetTool(mirrored(c.schema))
			r.server.Script("pay", c.faults...)
			if c.list.Name != "" {
				r.server.AlwaysMethod("tools/list", c.list)
			}
			_, rec, err := r.call("pay", time.Minute)
			effects := 0
			if c.cured {
				effects = 1
			}
			if (err == nil) != c.cured || r.server.Posts("pay") != c.posts || r.server.Effects("pay") != effects || r.server.Counts().Lists != c.lists {
				t.Errorf("%d POSTs, %d effects, %d lists, err %v, record %+v",
					r.server.Posts("pay"), r.server.Effects("pay"), r.server.Counts().Lists, err, rec)
			}
			if !c.cured && (rec.Outcome != observe.HTTPError || rec.Delivery != observe.Refused || *rec.JSONRPC.ErrorCode != mismatch) {
				t.Errorf("record %+v", rec)
			}
		})
	}
}

// TestMismatchOnALaterPage: the list is read until the tool is found.
func TestMismatchOnALaterPage(t *testing.T) {
	r := newRig(t, middlewaretest.Options{})
	for i := range 100 {
		r.server.SetTool(middlewaretest.Tool{Name: fmt.Sprint("tool_", i)})
	}
	last := mirrored(fmt.Sprintf(region, "Region"))
	last.Name = "last"
	r.server.SetTool(last)
	_, rec, err := r.callIn(t.Context(), "last", map[string]any{"region": "us-west1"})
	if err != nil || rec.PostCount != 2 || r.server.Effects("last") != 1 || r.server.Counts().Lists != 2 {
		t.Errorf("%d lists, err %v, record %+v", r.server.Counts().Lists, err, rec)
	}
}

// TestMismatchOfMany: one list serves all who miss the definition, each of whom is
// called once.
func TestMismatchOfMany(t *testing.T) {
	const callers = 50
	r := newRig(t, middlewaretest.Options{})
	r.server.SetTool(mirrored(fmt.Sprintf(region, "Region")))
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			if _, err := r.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"region": fmt.Sprint(i)}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if r.server.Effects("pay") != callers || r.server.Counts().Lists != 1 {
		t.Errorf("%d effects, %d lists", r.server.Effects("pay"), r.server.Counts().Lists)
	}
}

// TestMismatchOfTwoTools: the definition of one tool does not displace that of another.
func TestMismatchOfTwoTools(t *testing.T) {
	r := newRig(t, middlewaretest.Options{})
	for _, name := range []string{"pay", "send_mail"} {
		tool := mirrored(fmt.Sprintf(region, "Region"))
		tool.Name = name
		r.server.SetTool(tool)
	}
	for i := range 3 {
		for _, name := range []string{"pay", "send_mail"} {
			if _, rec, err := r.callIn(t.Context(), name, map[string]any{"region": fmt.Sprint(i)}); err != nil {
				t.Errorf("%v, %+v", err, rec)
			}
		}
	}
	if r.server.Counts().Lists != 2 || r.server.Posts("pay") != 4 || r.server.Posts("send_mail") != 4 {
		t.Errorf("%d lists, %d and %d POSTs", r.server.Counts().Lists, r.server.Posts("pay"), r.server.Posts("send_mail"))
	}
}

// TestMismatchWithoutCure: a list without end is not read without end, and a definition
// that did not help is not asked for again at once, until the tools are listed anew.
func TestMismatchWithoutCure(t *testing.T) {
	mismatch := middlewaretest.StatusError(http.StatusBadRequest, -32020, "header mismatch")
	for name, c := range map[string]struct {
		endless      bool
		posts, lists int // of the first call
	}{"endless": {true, 1, 20}, "of no use": {false, 2, 1}} {
		r := newRig(t, middlewaretest.Options{}, policy.Rule{Settings: policy.Settings{Breaker: policy.Breaker{Failures: 1000}}})
		r.server.SetTool(mirrored(fmt.Sprintf(region, "Region")))
		r.server.Always("pay", mismatch)
		if c.endless {
			r.server.ScriptMethod("tools/list", endless()...)
		}
		posts := c.posts
		for i := range 4 {
			_, rec, err := r.callIn(t.Context(), "pay", map[string]any{"region": fmt.Sprint(i)})
			if err == nil || rec.Outcome != observe.HTTPError || rec.Delivery != observe.Refused || r.server.Posts("pay") != posts || r.server.Counts().Lists != c.lists {
				t.Errorf("%s, call %d: %d POSTs, %d lists, %v", name, i, r.server.Posts("pay"), r.server.Counts().Lists, err)
			}
			posts++
		}
		if r.server.Effects("pay") != 0 {
			t.Errorf("%d effects", r.server.Effects("pay"))
		}
		if c.endless {
			continue
		}
		r.list(t)
		if _, _, err := r.callIn(t.Context(), "pay", map[string]any{"region": "x"}); err == nil || r.server.Counts().Lists != c.lists+2 {
			t.Errorf("after a list: %d lists, %v", r.server.Counts().Lists, err)
		}
	}
}

// TestEndlessListForKeyArgument: nor is a list without end read for a tool's schema.
func TestEndlessListForKeyArgument(t *testing.T) {
	onBoth(t, func(t *testing.T, so middlewaretest.Options) {
		r := newRig(t, so, policy.Rule{Tool: "pay_keyed", Settings: policy.Settings{Safety: policy.Keyed, Key: policy.Key{Argument: "/key"}}})
		r.server.ScriptMethod("tools/list", endless()...)
		_, rec, err := r.call("pay_keyed", time.Minute)
		if err == nil || rec.Delivery != observe.NotSent || r.server.Posts("pay_keyed") != 0 || r.server.Counts().Lists != 20 {
			t.Errorf("%d lists, %v, %+v", r.server.Counts().Lists, err, rec)
		}
	})
}

// endless are the pages of a list without end.
func endless() []middlewaretest.Fault {
	page := middlewaretest.Status(http.StatusOK)
	page.Header.Set("Content-Type", "application/json")
	pages := make([]middlewaretest.Fault, 1000)
	for i := range pages {
		pages[i] = page
		pages[i].Body = fmt.Sprintf(`{"jsonrpc":"2.0","id":%%id%%,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[],"nextCursor":"%d"}}`, i)
	}
	return pages
}

func (r *rig) list(t *testing.T) {
	t.Helper()
	if _, err := r.session.ListTools(t.Context(), &mcp.ListToolsParams{}); err != nil {
		t.Fatal(err)
	}
}
