package middleware_test

import (
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// FuzzLines: whatever bytes a server writes before its answer, the call ends, never in
// a success that no line holds, and the session goes on serving.
func FuzzLines(f *testing.F) {
	for _, text := range []string{
		goodLine, "", "{", "[]", "log\n{}\n", goodLine + "\n" + goodLine, "\xef\xbb\xbf" + goodLine, goodLine + goodLine,
		`{"jsonrpc":"2.0","id":%id%.0,"result":{"content":[]}}`, `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`,
		`{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"m"}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`,
		`{"jsonrpc":"2.0","id":"x","method":"ping"}`, `{"jsonrpc":"2.0","method":"notifications/message"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}`,
		`{"jsonrpc":"2.0","id":1.5,"method":"sampling/createMessage","params":7}`, `{"id":%id%,"result":1}`, strings.Repeat("[", 3000), strings.Repeat("x", 200_000),
		"\r\n\r\r\n\x00\n" + goodLine + "\r\n", `{"jsonrpc":"2.0","id":%id%,"result":{"content":[],"isError":true}}`,
	} {
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, text string, newest bool) {
		version := stdioVersions[0]
		if newest {
			version = stdioVersions[1]
		}
		r, s := newPipeRig(t, version, policy.Rule{Settings: policy.Settings{MaxResult: 100_000}})
		s.interfere(text)
		res, rec, err := r.call("pay", orders{}, 20*time.Second)
		id := string(rec.JSONRPC.ID)
		if (err == nil) != rec.Outcome.Usable() || rec.Outcome == observe.Timeout || rec.Outcome.Layer() == observe.LayerTransport && rec.Outcome != observe.ResultTooLarge {
			t.Errorf("%s, error %v", rec.Outcome, err)
		}
		if rec.Outcome == observe.ToolSuccess && !isDone(res) && !holdsLine(strings.ReplaceAll(text, "%id%", id), id) {
			t.Errorf("TOOL_SUCCESS out of %q", text)
		}
		s.interfere("")
		r.serves()
		if err := r.session.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
}

// isDone reports whether a result is the server's own answer.
func isDone(res *mcp.CallToolResult) bool {
	if len(res.Content) != 1 {
		return false
	}
	text, ok := res.Content[0].(*mcp.TextContent)
	return ok && text.Text == "done"
}

// holdsLine is a slow and plain second opinion.
func holdsLine(text, id string) bool {
	for _, line := range strings.Split(text, "\n") {
		if isResult([]byte(line), id) {
			return true
		}
	}
	return false
}
