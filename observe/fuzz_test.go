package observe_test

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/surecall/surecall/observe"
	"pgregory.net/rapid"
)

// failer is what tests, fuzzing and rapid have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// readings are the ways of reading that are tried on everything.
var readings = []*observe.Reading{
	nil,
	strict,
	{Tolerate: []observe.Deviation{observe.DeviationInvalidUTF8}, ResultTypes: []string{"task"}},
}

// checkVerdict holds a verdict on a whole body against two other readers, those
// of encoding/json and of the SDK.
func checkVerdict(t failer, body []byte, v observe.Verdict) {
	t.Helper()
	tolerated := slices.Contains(v.Deviations, observe.DeviationInvalidUTF8)
	switch {
	case v.Outcome.Layer() == "" || (v.Reason == "") != v.Outcome.Usable():
		t.Fatalf("incoherent verdict %+v on %q", v, body)
	case !v.Outcome.Answered():
		if v.Delivery != observe.Unknown {
			t.Fatalf("delivery %s without an answer: %q", v.Delivery, body)
		}
		return
	case v.Outcome.Usable() && v.Delivery != observe.Answered:
		t.Fatalf("delivery %s of %s: %q", v.Delivery, v.Outcome, body)
	case !json.Valid(body) || !tolerated && !utf8.Valid(body):
		t.Fatalf("%s on bytes that are not JSON: %q", v.Outcome, body)
	}
	checkLoose(t, body, v)
	if !slices.Contains(v.Deviations, observe.DeviationCodeForm) {
		checkSDK(t, body, v)
	}
}

// checkLoose reads as encoding/json does: keys in any case, the last one counts.
func checkLoose(t failer, body []byte, v observe.Verdict) {
	t.Helper()
	var loose struct {
		Result, Error *json.RawMessage
		Method        *string
	}
	if err := json.Unmarshal(body, &loose); err != nil || loose.Method != nil || (loose.Error != nil) != (v.Outcome == observe.JSONRPCError) {
		t.Fatalf("%s, encoding/json sees %+v (%v) in %q", v.Outcome, loose, err, body)
	}
	if v.Outcome != observe.ToolSuccess && v.Outcome != observe.ToolError {
		return
	}
	var result struct {
		IsError bool
		Content []map[string]json.RawMessage
	}
	if err := json.Unmarshal(*loose.Result, &result); err != nil || result.Content == nil || result.IsError != (v.Outcome == observe.ToolError) {
		t.Fatalf("%s, encoding/json sees %+v (%v) in %q", v.Outcome, result, err, body)
	}
}

func checkSDK(t failer, body []byte, v observe.Verdict) {
	t.Helper()
	msg, err := jsonrpc.DecodeMessage(body)
	if err != nil {
		t.Fatalf("%s, the SDK says %v on %q", v.Outcome, err, body)
	}
	resp, ok := msg.(*jsonrpc.Response)
	if !ok || resp.ID.Raw() != int64(1) || (resp.Error != nil) != (v.Outcome == observe.JSONRPCError) {
		t.Fatalf("%s, the SDK reads %#v in %q", v.Outcome, msg, body)
	}
	if resp.Error == nil {
		return
	}
	if e := resp.Error.(*jsonrpc.Error); e.Code != v.Error.Code {
		t.Fatalf("code %d, the SDK reads %d in %q", v.Error.Code, e.Code, body)
	}
}

func checkBody(t failer, body []byte) {
	t.Helper()
	for _, version := range versions {
		for _, r := range readings {
			v := observe.Classify(ok(string(body), version), r)
			if v.Outcome == observe.StreamIncomplete {
				continue // a blank body
			}
			checkVerdict(t, body, v)
		}
	}
}

// seeds are all bodies of the tables.
func seeds() []string {
	all := []string{good, rpcError, `{unclosed`, `{"jsonrpc":"2.0","method":"x"}`, `{"jsonrpc":"2.0","id":"a","method":"x","params":{}}`}
	for _, c := range envelopeCases {
		all = append(all, c.body)
	}
	for _, c := range resultCases {
		all = append(all, withResult(c.result))
	}
	all = append(all, withResult(`{"resultType":"input_required","inputRequests":{"a":{}},"requestState":"s"}`), withResult(`{"resultType":"task"}`))
	for _, depth := range []int{997, 998} {
		all = append(all, string(within(nested("[", "]", depth)).Body))
	}
	return all
}

func TestVerdictAgainstOtherReaders(t *testing.T) {
	for _, body := range seeds() {
		checkBody(t, []byte(body))
	}
}

// Messages that are nearly right, made of the members that count.
func TestVerdictAgainstOtherReadersOnVariants(t *testing.T) {
	member := func(keys, values []string) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			return `"` + rapid.SampledFrom(keys).Draw(t, "key") + `":` + rapid.SampledFrom(values).Draw(t, "value")
		})
	}
	object := func(keys, values []string, most int) *rapid.Generator[string] {
		return rapid.Map(rapid.SliceOfN(member(keys, values), 0, most), func(members []string) string {
			return "{" + strings.Join(members, ",") + "}"
		})
	}
	odd := []string{`null`, `true`, `false`, `0`, `1`, `-32601`, `1.0`, `"x"`, `""`, `[]`, `{}`, `[{}]`, `[null]`, `"\ud800"`, "\"\xff\"", `-0`, `0e1`, `1e2`, `12345678901234567890`}
	result := object([]string{"content", "content", "isError", "ISERROR", `i\u0073Error`, "i\u017fError", "resultType", "x", "structuredContent", "inputRequests", "requestState"},
		append(odd, `"complete"`, `"input_required"`, `"task"`), 5)
	failure := object([]string{"code", "message", "data", "Code", `mess\u0061ge`, "x"}, odd, 4)
	rapid.Check(t, func(t *rapid.T) {
		values := append(odd, `"2.0"`, result.Draw(t, "result"), result.Draw(t, "result"), failure.Draw(t, "error"))
		body := object([]string{"jsonrpc", "id", "result", "error", "method", "Result", "ERROR", `\u0069d`, "x"}, values, 3).Draw(t, "envelope")
		if rapid.IntRange(0, 3).Draw(t, "frame") > 0 {
			body = strings.Replace(body, "{", `{"jsonrpc":"2.0","id":1,`, 1)
			body = strings.Replace(body, ",}", "}", 1)
		}
		checkBody(t, []byte(body))
	})
}

func FuzzClassify(f *testing.F) {
	for _, body := range seeds() {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		checkBody(t, body)
		for _, status := range []int{302, 404, 409, 500} {
			v := observe.Classify(observe.Answer{Status: status, Body: body, ID: "1", HadSession: true}, nil)
			if v.Outcome.Answered() || v.Outcome.Layer() != observe.LayerTransport || v.Delivery == observe.Answered || status >= 500 && v.Delivery != observe.Unknown {
				t.Fatalf("status %d: %s/%s on %q", status, v.Outcome, v.Delivery, body)
			}
		}
	})
}

func FuzzMessage(f *testing.F) {
	for _, body := range seeds() {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, version := range versions {
			kind, v := observe.ClassifyMessage(data, ok("", version), nil)
			switch kind {
			case observe.KindNotification, observe.KindRequest:
				checkPassedOn(t, data, kind, v)
			case observe.KindResponse, observe.KindInvalid:
				checkVerdict(t, data, v)
				if (kind == observe.KindInvalid) == v.EchoedID {
					t.Fatalf("%s with echoed id %v: %q", kind, v.EchoedID, data)
				}
			default:
				t.Fatalf("no kind: %q", data)
			}
		}
		checkEnvelope(t, data)
	})
}

// checkPassedOn: the SDK, too, reads a request or a notification.
func checkPassedOn(t *testing.T, data []byte, kind observe.MessageKind, v observe.Verdict) {
	msg, err := jsonrpc.DecodeMessage(data)
	if err != nil || v.Outcome != "" {
		t.Fatalf("%s (%v), the SDK says %v on %q", kind, v.Outcome, err, data)
	}
	if req, ok := msg.(*jsonrpc.Request); !ok || req.IsCall() != (kind == observe.KindRequest) {
		t.Fatalf("%s, the SDK reads %#v in %q", kind, msg, data)
	}
}

// checkEnvelope: what Envelope reads of a message of the SDK's is what the SDK
// meant, whatever part of it is there.
func checkEnvelope(t *testing.T, data []byte) {
	msg, err := jsonrpc.DecodeMessage(data)
	if err != nil || !utf8.Valid(data) {
		observe.Envelope(data)
		return
	}
	written, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return
	}
	kind, id, method, ok := observe.Envelope(written)
	req, isRequest := msg.(*jsonrpc.Request)
	if !isRequest || req.Method == "" {
		return // the SDK leaves an empty method out
	}
	if want := strings.ToValidUTF8(req.Method, "\uFFFD"); !ok || method != want || (kind == observe.KindRequest) != req.IsCall() {
		t.Fatalf("%s %q %q %v of %q", kind, id, method, ok, written)
	}
	for n := range min(len(written), 200) {
		if k, i, m, ok := observe.Envelope(written[:n]); ok && (k != kind || i != id || m != method) {
			t.Fatalf("%s %q %q of the beginning %q", k, i, m, written[:n])
		}
	}
}

func FuzzEventReader(f *testing.F) {
	for _, stream := range []string{
		"event: message\ndata: " + good + "\n\n", "id: 1\nretry: 5\ndata:\n\n", "data: a\r\ndata: b\r\n\r\n", "data\rid\revent\r\r",
		"\xEF\xBB\xBFdata: a\n\n", ": x\n\ndata", "data: a\n\rdata: b\r\n\n", "id: \x00\nretry: x\nfoo\n\n",
	} {
		f.Add([]byte(stream), uint16(1), uint16(0))
		f.Add([]byte(stream), uint16(3), uint16(12))
	}
	f.Fuzz(func(t *testing.T, stream []byte, size, limit uint16) {
		whole, r, err := events(bytes.NewReader(stream), int(limit))
		cut, c, cutErr := events(pieces(stream, int(size)+1), int(limit))
		if err != cutErr || err == io.EOF && r.Unfinished() != c.Unfinished() {
			t.Fatalf("error %v whole, %v in pieces of %d: %q", err, cutErr, size+1, stream)
		}
		if !slices.EqualFunc(whole, cut, func(a, b observe.Event) bool { return reflect.DeepEqual(a, b) }) {
			t.Fatalf("%s whole, %s in pieces of %d: %q", show(whole), show(cut), size+1, stream)
		}
		for _, e := range whole {
			if limit > 0 && len(e.Data) >= int(limit) {
				t.Fatalf("%d bytes of data, limit %d", len(e.Data), limit)
			}
			checkRewritten(t, e)
		}
	})
}

// checkRewritten: what AppendEvent writes is the same event to the standard, and
// the same message to the SDK.
func checkRewritten(t *testing.T, e observe.Event) {
	written := observe.AppendEvent(nil, e)
	again, _, _ := events(bytes.NewReader(written), 0)
	e.Rewritten = false
	if len(e.Data) == 0 && !e.HasID && !e.HasRetry {
		if len(again) != 0 {
			t.Fatalf("an empty event became %s", show(again))
		}
		return
	}
	if len(again) != 1 || !reflect.DeepEqual(again[0], e) {
		t.Fatalf("%s was written as %q and read as %s", show([]observe.Event{e}), written, show(again))
	}
	data, name, ok := sdkEvent(written)
	if !ok || name != e.Type {
		t.Fatalf("the SDK does not read %q (type %q)", written, name)
	}
	if json.Valid(e.Data) && !sameJSON(data, e.Data) {
		t.Fatalf("the SDK reads another message than %q: %q", e.Data, data)
	}
}

// sdkEvent models how the SDK reads one event (go-sdk v1.8.0, mcp/event.go): LF
// lines that each need a colon, values without white space around them.
func sdkEvent(written []byte) (data []byte, name string, ok bool) {
	var lines []string
	for line := range strings.Lines(string(written)) {
		if line = strings.TrimRight(line, "\r\n"); line == "" {
			continue
		}
		key, value, found := strings.Cut(line, ":")
		if !found {
			return nil, "", false
		}
		switch key {
		case "data":
			lines = append(lines, strings.TrimSpace(value))
		case "event":
			name = strings.TrimSpace(value)
		}
	}
	return []byte(strings.Join(lines, "\n")), name, true
}

func sameJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
