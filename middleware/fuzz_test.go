package middleware_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// FuzzWrappedCall: whatever bytes answer a call, it ends at once in an outcome, is
// never a success unless the bytes hold one complete valid result, and leaves the
// session serving.
func FuzzWrappedCall(f *testing.F) {
	const good = `{"jsonrpc":"2.0","id":%id%,"result":{"content":[]}}`
	for _, body := range []string{
		good, "", "{", "[]", "null", good + good, `{"jsonrpc":"2.0","id":%id%,"result":null}`,
		`{"jsonrpc":"2.0","id":%id%,"error":{"code":1,"message":"m"}}`,
		`{"jsonrpc":"2.0","id":%id%,"result":{"content":[],"isError":true,"isError":false}}`,
		`{"jsonrpc":"2.0","id":%id%,"error":null,"result":{"content":[{"type":"text","text":"x"}]}}`,
		`{"jsonrpc":"2.0","id":%id%,"result":{"content":[{"type":"nosuch"}],"_meta":1}}`,
		strings.Repeat("[", 3000),
	} {
		f.Add(body, false)
		f.Add("data: "+body+"\n\n", true)
	}
	for _, request := range hostile {
		f.Add(`{"jsonrpc":"2.0","id":%id%,"result":{"resultType":"input_required","content":[],"inputRequests":{"q":`+request+`}}}`, false)
	}
	f.Add(": c\r\rid: 1\rdata: {\rdata: \"jsonrpc\":\"2.0\",\"id\":%id%,\"result\":{\"content\":[]}}\r\r", true)

	var body string
	var sse bool
	b := newBenchOf(f, new(user).handlers(), nil, policy.Rule{Settings: policy.Settings{Breaker: policy.Breaker{Failures: -1}, Key: policy.Key{Guard: -1}}})
	f.Cleanup(func() { _ = b.session.Close() })
	b.wire.call = func(_ int, p posted) (*http.Response, error) {
		if p.tool == "read_weather" {
			return p.answer()
		}
		resp := jsonAnswer(200, strings.ReplaceAll(body, "%id%", string(p.id)))
		if resp.ContentLength = -1; sse {
			resp.Header.Set("Content-Type", "text/event-stream")
		}
		return resp, nil
	}
	f.Fuzz(func(t *testing.T, text string, stream bool) {
		b.t, b.records, b.wire.posts = t, nil, nil
		body, sse = text, stream
		_, rec, err := b.call("pay", 20*time.Second)
		sent := strings.ReplaceAll(body, "%id%", string(b.wire.posts[0].id))
		if rec.Outcome == observe.ToolSuccess && !holdsResult(sent, sse, string(b.wire.posts[0].id)) {
			t.Errorf("TOOL_SUCCESS out of %q", sent)
		}
		if rec.Outcome == observe.Timeout || (err == nil) != rec.Outcome.Usable() {
			t.Errorf("%s, error %v", rec.Outcome, err)
		}
		if _, _, err := b.call("read_weather", 20*time.Second); err != nil {
			t.Errorf("the session died: %v", err)
		}
	})
}

// holdsResult is a slow and plain second opinion, on the standard library alone.
func holdsResult(text string, sse bool, id string) bool {
	if !sse {
		return isResult([]byte(text), id)
	}
	text = strings.TrimPrefix(text, "\xef\xbb\xbf")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	var data []string
	for _, line := range strings.SplitAfter(text, "\n") {
		whole := strings.HasSuffix(line, "\n")
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" && whole:
			if isResult([]byte(strings.Join(data, "\n")), id) {
				return true
			}
			data = nil
		case line == "data" || strings.HasPrefix(line, "data:"):
			data = append(data, strings.TrimPrefix(strings.TrimPrefix(line, "data:"), " "))
		}
	}
	return false
}

func isResult(body []byte, id string) bool {
	if !json.Valid(body) {
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	var msg map[string]json.RawMessage
	if dec.Decode(&msg) != nil {
		return false
	}
	if _, err := dec.Token(); err != io.EOF {
		return false
	}
	var result map[string]json.RawMessage
	var content []json.RawMessage
	var isError bool
	if e, ok := msg["error"]; ok && string(e) != "null" {
		return false
	}
	if json.Unmarshal(msg["result"], &result) != nil || json.Unmarshal(result["content"], &content) != nil || content == nil {
		return false
	}
	if raw, ok := result["isError"]; ok && json.Unmarshal(raw, &isError) != nil {
		return false
	}
	var got, want float64
	if json.Unmarshal(msg["id"], &got) != nil || json.Unmarshal([]byte(id), &want) != nil {
		return false
	}
	return string(msg["jsonrpc"]) == `"2.0"` && got == want && !isError
}
