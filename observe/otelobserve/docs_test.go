package otelobserve_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe/otelobserve"
)

const page = "../../docs/telemetry.md"

func readPage(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var textFence = regexp.MustCompile("(?s)```text\n(.*?)```")

// The page shows the trace of one call with two attempts as it is.
func TestPageShowsTheTrace(t *testing.T) {
	r := newRig(t, servers["2026-07-28"], otelobserve.Options{})
	r.server.Script("read_weather", middlewaretest.Status(503))
	if err := r.call(t.Context(), "read_weather"); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, s := range slices.Concat(r.named("tools/call read_weather"), r.named("surecall.attempt")) {
		printSpan(&b, s)
	}
	shown := textFence.FindStringSubmatch(readPage(t))
	if shown == nil || shown[1] != b.String() {
		t.Errorf("%s does not show\n%s", page, &b)
	}
}

// printSpan prints a span. What differs from run to run is left out.
func printSpan(b *strings.Builder, s sdktrace.ReadOnlySpan) {
	indent := ""
	if s.Parent().IsValid() {
		indent = "    "
	}
	failed := ""
	if s.Status().Code == codes.Error {
		failed = ", error"
	}
	fmt.Fprintf(b, "%s%s (%s%s)\n", indent, s.Name(), s.SpanKind(), failed)
	for _, e := range s.Events() {
		fmt.Fprintf(b, "%s    event %s\n", indent, e.Name)
		printAttributes(b, indent+"        ", e.Attributes)
	}
	printAttributes(b, indent+"    ", s.Attributes())
}

func printAttributes(b *strings.Builder, indent string, attrs []attribute.KeyValue) {
	attrs = slices.SortedFunc(slices.Values(attrs), func(x, y attribute.KeyValue) int { return strings.Compare(string(x.Key), string(y.Key)) })
	for _, a := range attrs {
		value := a.Value.String()
		switch a.Key {
		case "server.port", "surecall.wait.duration", "jsonrpc.request.id":
			value = "..."
		}
		fmt.Fprintf(b, "%s%-*s %s\n", indent, 36-len(indent), a.Key, value)
	}
}

// The page lists every metric.
func TestPageListsTheMetrics(t *testing.T) {
	text := readPage(t)
	source, err := os.ReadFile("semconv.go")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`metric\w+\s+= "([\w.]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(names) != 8 {
		t.Fatalf("%d metrics", len(names))
	}
	for _, m := range names {
		if !strings.Contains(text, "| `"+m[1]+"` |") {
			t.Errorf("%s says nothing of %s", page, m[1])
		}
	}
}
