package observe_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/surecall/surecall/observe"
)

// answerBody is a tool result of one text content, as the SDK's server writes it.
func answerBody(text string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":%s}],"resultType":"complete"}}`, quote(text))
}

func quote(text string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

// fill repeats a piece of text up to n bytes.
func fill(piece string, n int) string { return strings.Repeat(piece, n/len(piece)+1) }

// smallObjects is the text of a JSON array of small objects of about n bytes.
func smallObjects(n int) string {
	var b strings.Builder
	b.WriteString("[")
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `{"id":%d,"name":"item %d","price":%d.5,"active":true,"tags":["a","b"],"parent":null},`, i, i, i%100)
	}
	return strings.TrimSuffix(b.String(), ",") + "]"
}

// bodies are the kinds of result whose speed is watched, of about n bytes each.
func bodies(n int) []struct {
	name string
	body []byte
} {
	objects := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":%s}}`, smallObjects(n))
	return []struct {
		name string
		body []byte
	}{
		{"text", answerBody(fill("The quick brown fox jumps over the lazy dog. ", n))},
		{"lines", answerBody(fill(strings.Repeat("x", 59)+"\n", n))},
		{"json_in_string", answerBody(smallObjects(n))},
		{"non_ascii", answerBody(fill("Съешь же ещё этих мягких французских булок. ", n))},
		{"objects", objects},
	}
}

func BenchmarkClassify(b *testing.B) {
	for _, size := range []struct {
		name  string
		bytes int
	}{{"1KB", 1 << 10}, {"1MB", 1 << 20}} {
		for _, kind := range bodies(size.bytes) {
			b.Run(size.name+"/"+kind.name, func(b *testing.B) {
				a := observe.Answer{Status: 200, Body: kind.body, ID: "1"}
				b.SetBytes(int64(len(kind.body)))
				b.ReportAllocs()
				for b.Loop() {
					if v := observe.Classify(a, nil); v.Outcome != observe.ToolSuccess {
						b.Fatal(v.Outcome, v.Reason)
					}
				}
			})
		}
	}
}

func BenchmarkEnvelope(b *testing.B) {
	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"text":%s}}}`, quote(fill("text ", 1<<20)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, _, ok := observe.Envelope(body); !ok {
			b.Fatal("not read")
		}
	}
}

func BenchmarkEventReader(b *testing.B) {
	progress := "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":1}}\n\n"
	for _, stream := range []struct {
		name string
		data []byte
	}{
		{"1KB", sse(answerBody(fill("text ", 1<<10)))},
		{"1MB", sse(answerBody(fill("text ", 1<<20)))},
		{"20MB", sse(answerBody(fill("text ", 20<<20)))},
		{"progress", []byte(strings.Repeat(progress, 1000))},
	} {
		b.Run(stream.name, func(b *testing.B) {
			b.SetBytes(int64(len(stream.data)))
			b.ReportAllocs()
			for b.Loop() {
				// A source of the size that net/http reads from a connection.
				r := observe.NewEventReader(pieces(stream.data, 32<<10), 0)
				for {
					if _, err := r.Next(); err == io.EOF {
						break
					} else if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func sse(data []byte) []byte { return fmt.Appendf(nil, "event: message\ndata: %s\n\n", data) }

// pieces is a source that gives at most n bytes a Read.
func pieces(data []byte, n int) io.Reader {
	return &piecewise{data: data, next: func() int { return n }}
}

type piecewise struct {
	data []byte
	next func() int // how much the next Read gives
}

func (p *piecewise) Read(buf []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := copy(buf[:min(len(buf), p.next())], p.data)
	p.data = p.data[n:]
	return n, nil
}
