package middleware_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/observe"
)

// sdkServer is the SDK's own stateless server with one tool whose result is one
// text of that size.
func sdkServer(size int, stream bool) http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	text := strings.Repeat("x", size)
	mcp.AddTool(server, &mcp.Tool{Name: "get"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: !stream})
}

// readyServer answers tools/call with bytes made before, so that nearly all that is
// measured is the client. Everything else goes to the SDK's server.
func readyServer(size int, stream bool) http.Handler {
	sdk := sdkServer(1, stream)
	tail := []byte(`,"result":{"resultType":"complete","content":[{"type":"text","text":"` + strings.Repeat("x", size) + `"}]}}`)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") != "tools/call" {
			sdk.ServeHTTP(w, r)
			return
		}
		var msg struct{ ID json.RawMessage }
		if err := json.NewDecoder(r.Body).Decode(&msg); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		head, end := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s`, msg.ID), []byte{}
		w.Header().Set("Content-Type", "application/json")
		if stream {
			w.Header().Set("Content-Type", "text/event-stream")
			head, end = append([]byte("data: "), head...), []byte("\n\n")
		} else {
			w.Header().Set("Content-Length", fmt.Sprint(len(head)+len(tail)))
		}
		for _, part := range [][]byte{head, tail, end} {
			_, _ = w.Write(part)
		}
	})
}

// benchSession connects a client, wrapped if stack is not nil.
func benchSession(b testing.TB, url string, stack *middleware.Stack) *mcp.ClientSession {
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

func benchStack() *middleware.Stack {
	return middleware.New(&middleware.Options{OnRecord: func(context.Context, *observe.Record) {}})
}

// BenchmarkWrapped calls through the bare and the wrapped client in turn, against
// one server in the same process, with a deadline on each call and records on. It
// reports the median ratio of their times, and the allocations and bytes that the
// wrapping adds to a call. "control" compares the bare client with another bare
// one: what it is away from 1 is noise.
func BenchmarkWrapped(b *testing.B) {
	for _, server := range []struct {
		name    string
		handler func(int, bool) http.Handler
	}{{"sdk", sdkServer}, {"ready", readyServer}} {
		for _, c := range []struct {
			name     string
			size     int
			stream   bool
			parallel int
			batch    int
		}{
			{"1KB-json", 1 << 10, false, 1, 20},
			{"1KB-sse", 1 << 10, true, 1, 20},
			{"1KB-256-parallel", 1 << 10, false, 256, 1},
			{"1MB-json", 1 << 20, false, 1, 1},
			{"1MB-sse", 1 << 20, true, 1, 1},
			{"20MB-json", 20 << 20, false, 1, 1},
			{"20MB-sse", 20 << 20, true, 1, 1},
			{"control", 1 << 10, false, 1, 20},
		} {
			b.Run(server.name+"/"+c.name, func(b *testing.B) {
				h := httptest.NewServer(server.handler(c.size, c.stream))
				b.Cleanup(h.Close)
				stack := benchStack()
				if c.name == "control" {
					stack = nil
				}
				bare, wrapped := benchSession(b, h.URL, nil), benchSession(b, h.URL, stack)
				compare(b, c.batch*c.parallel, func(cs *mcp.ClientSession) {
					for range c.batch {
						callMany(b, cs, c.parallel)
					}
				}, bare, wrapped)
			})
		}
	}
}

func callMany(b testing.TB, cs *mcp.ClientSession, parallel int) {
	var wg sync.WaitGroup
	for range parallel {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			res, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "get"})
			if err != nil || len(res.Content) != 1 {
				b.Errorf("call: %v", err)
			}
		})
	}
	wg.Wait()
}

// compare runs f with the bare and the wrapped session in turn, and reports the
// second in terms of the first.
func compare(b *testing.B, calls int, f func(*mcp.ClientSession), bare, wrapped *mcp.ClientSession) {
	for range 3 {
		f(bare)
		f(wrapped)
	}
	var ratios, bares []float64
	var mallocs, bytes int64
	b.ResetTimer()
	for range b.N {
		tb, mb, bb := cost(func() { f(bare) })
		tw, mw, bw := cost(func() { f(wrapped) })
		bares = append(bares, float64(tb.Microseconds())/float64(calls))
		ratios = append(ratios, float64(tw)/float64(tb))
		mallocs, bytes = mallocs+mw-mb, bytes+bw-bb
	}
	b.ReportMetric(median(ratios), "x-bare")
	b.ReportMetric(median(bares), "bare-µs/call")
	b.ReportMetric(float64(mallocs)/float64(b.N*calls), "more-allocs/call")
	b.ReportMetric(float64(bytes)/float64(b.N*calls), "more-B/call")
	b.ReportMetric(0, "ns/op")
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

func cost(f func()) (time.Duration, int64, int64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	f()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	return took, int64(after.Mallocs - before.Mallocs), int64(after.TotalAlloc - before.TotalAlloc)
}

const peakEnv = "SURECALL_BENCH_PEAK"

// BenchmarkPeakMemory reports the largest resident memory of a process that makes
// five calls with 20 MB results, bare and wrapped; the server is another process.
func BenchmarkPeakMemory(b *testing.B) {
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for _, stream := range []bool{false, true} {
		h := httptest.NewServer(readyServer(20<<20, stream))
		peaks := map[string][]float64{}
		for range max(b.N, 3) {
			for _, mode := range []string{"bare", "wrapped"} {
				cmd := exec.Command(exe, "-test.run=^TestPeakMemoryChild$")
				cmd.Env = append(os.Environ(), peakEnv+"="+mode+" "+h.URL)
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
				peaks[mode] = append(peaks[mode], float64(usage.Maxrss)/1024)
			}
		}
		h.Close()
		kind := map[bool]string{false: "json", true: "sse"}[stream]
		b.ReportMetric(median(peaks["bare"]), "bare-"+kind+"-MiB")
		b.ReportMetric(median(peaks["wrapped"]), "wrapped-"+kind+"-MiB")
	}
	b.ReportMetric(0, "ns/op")
}

// TestPeakMemoryChild is the child process of BenchmarkPeakMemory; by itself it has
// nothing to do.
func TestPeakMemoryChild(t *testing.T) {
	mode, url, ok := strings.Cut(os.Getenv(peakEnv), " ")
	if !ok {
		return
	}
	var stack *middleware.Stack
	if mode == "wrapped" {
		stack = benchStack()
	}
	cs := benchSession(t, url, stack)
	for range 5 {
		callMany(t, cs, 1)
		runtime.GC()
	}
}
