package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/observe"
)

// readyServer answers tools/call with bytes made before, so that what is measured
// is the client. Everything else goes to the SDK's server.
func readyServer(b *testing.B, size int, stream bool) string {
	server := mcp.NewServer(&mcp.Implementation{Name: "ready", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "get"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	})
	sdk := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	tail := []byte(`,"result":{"resultType":"complete","content":[{"type":"text","text":"` + strings.Repeat("x", size) + `"}]}}`)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") != "tools/call" {
			sdk.ServeHTTP(w, r)
			return
		}
		var msg struct{ ID json.RawMessage }
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &msg); err != nil {
			http.Error(w, err.Error(), 400)
			return
		}
		head := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s`, msg.ID)
		if stream {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("data: "))
			_, _ = w.Write(head)
			_, _ = w.Write(tail)
			_, _ = w.Write([]byte("\n\n"))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(len(head)+len(tail)))
		_, _ = w.Write(head)
		_, _ = w.Write(tail)
	}))
	b.Cleanup(h.Close)
	return h.URL
}

// benchSession connects a client, wrapped if stack is not nil.
func benchSession(b *testing.B, url string, stack *middleware.Stack) *mcp.ClientSession {
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	hc := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 300}}
	if stack != nil {
		client.AddSendingMiddleware(stack.Middleware()...)
		hc = stack.HTTPClient(hc)
	}
	cs, err := client.Connect(b.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: hc}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cs.Close(); hc.CloseIdleConnections() })
	return cs
}

// BenchmarkWrapped calls through the bare and the wrapped client in turn, against
// one server, and reports the median ratio of their times, and the allocations
// and bytes that the wrapping adds to a call.
func BenchmarkWrapped(b *testing.B) {
	for _, c := range []struct {
		name     string
		size     int
		stream   bool
		parallel int
	}{
		{"1KB-json", 1 << 10, false, 1},
		{"1KB-sse", 1 << 10, true, 1},
		{"1KB-256-parallel", 1 << 10, false, 256},
		{"1MB-json", 1 << 20, false, 1},
		{"1MB-sse", 1 << 20, true, 1},
		{"20MB-json", 20 << 20, false, 1},
		{"20MB-sse", 20 << 20, true, 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			url := readyServer(b, c.size, c.stream)
			stack := middleware.New(&middleware.Options{OnRecord: func(context.Context, *observe.Record) {}})
			bare, wrapped := benchSession(b, url, nil), benchSession(b, url, stack)
			compare(b, func() { callMany(b, bare, c.parallel) }, func() { callMany(b, wrapped, c.parallel) }, c.parallel)
		})
	}
}

func callMany(b *testing.B, cs *mcp.ClientSession, parallel int) {
	var wg sync.WaitGroup
	for range parallel {
		wg.Go(func() {
			res, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "get"})
			if err != nil || len(res.Content) != 1 {
				b.Errorf("call: %v", err)
			}
		})
	}
	wg.Wait()
}

// compare runs a and b in turn and reports b's cost in terms of a's.
func compare(b *testing.B, bare, wrapped func(), calls int) {
	for range 3 {
		bare()
		wrapped()
	}
	var ratios []float64
	var mallocs, bytes int64
	b.ResetTimer()
	for i := range b.N {
		tb, mb, bb := cost(bare, i%2 == 0)
		tw, mw, bw := cost(wrapped, i%2 == 0)
		ratios = append(ratios, float64(tw)/float64(tb))
		mallocs += mw - mb
		bytes += bw - bb
	}
	slices.Sort(ratios)
	n := float64(b.N * calls)
	b.ReportMetric(ratios[len(ratios)/2], "x-bare")
	b.ReportMetric(float64(mallocs)/n, "more-allocs/call")
	b.ReportMetric(float64(bytes)/n, "more-B/call")
	b.ReportMetric(0, "ns/op")
}

func cost(f func(), _ bool) (time.Duration, int64, int64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	f()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	return took, int64(after.Mallocs - before.Mallocs), int64(after.TotalAlloc - before.TotalAlloc)
}

var _ = bytes.MinRead
