package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asServer {
		serveStdio(os.Args[2:])
		return
	}
	goleak.VerifyTestMain(m)
}

// visit is one run of the program.
type visit struct {
	code           int
	stdout, stderr string
}

func runDoctor(t *testing.T, args ...string) visit {
	t.Helper()
	return runWith(t.Context(), strings.NewReader(""), args...)
}

func runWith(ctx context.Context, stdin io.Reader, args ...string) visit {
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, stdin, &stdout, &stderr)
	return visit{code, stdout.String(), stderr.String()}
}

// want checks the exit status and that the last line of stderr is the program's own
// and says what it should; an empty text stands for no complaint.
func (v visit) want(t *testing.T, code int, says string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(v.stderr), "\n")
	last := lines[len(lines)-1]
	if v.code != code || says != "" && (!strings.HasPrefix(last, "doctor: ") || !strings.Contains(last, says)) {
		t.Errorf("status %d, want %d, saying %q; stderr:\n%sstdout:\n%s", v.code, code, says, v.stderr, v.stdout)
	}
}

// records decodes stdout, each line of which must be one record and nothing else.
func (v visit) records(t *testing.T) []observe.Record {
	t.Helper()
	var all []observe.Record
	for line := range strings.Lines(v.stdout) {
		var r observe.Record
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&r); err != nil || d.More() {
			t.Fatalf("%q is not one record: %v", line, err)
		}
		all = append(all, r)
	}
	return all
}

// outcomes shows what the calls came to: "pay TOOL_SUCCESS answered".
func (v visit) outcomes(t *testing.T) string {
	t.Helper()
	var all []string
	for _, r := range v.records(t) {
		all = append(all, fmt.Sprintf("%s %s %s", r.Tool, r.Outcome, r.Delivery))
	}
	return strings.Join(all, "; ")
}

func newServer(t *testing.T, o middlewaretest.Options) *middlewaretest.Server {
	t.Helper()
	s := middlewaretest.NewServer(&o)
	t.Cleanup(s.Close)
	return s
}

// kinds are the servers that whole runs are tried on.
func kinds() map[string]middlewaretest.Options {
	return map[string]middlewaretest.Options{
		"2026-07-28":          {Version: middlewaretest.Version20260728},
		"2026-07-28 stream":   {Version: middlewaretest.Version20260728, Stream: true},
		"2025-11-25":          {Version: middlewaretest.Version20251125},
		"2025-11-25 sessions": {Version: middlewaretest.Version20251125, Sessions: true, Stream: true, EventIDs: true, StandaloneSSE: true},
	}
}
