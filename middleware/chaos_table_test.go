package middleware_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// A chaosTable adds up what happened, by the fault that an intent met first and by
// safety class.
type chaosTable struct {
	total    chaosRow
	faults   map[string]*chaosRow
	classes  map[string]*chaosRow
	manners  map[string]*chaosRow
	versions map[string]*chaosRow
	late     time.Duration // at most
}

// A chaosRow counts intents and their calls.
type chaosRow struct {
	intents, calls int
	reruns         int // calls that callers made beyond the first of an intent
	repeats        int // attempts that this library made beyond the first of a call

	// Calls, by what they were said to be.
	success, otherAnswer, notRun, unknown, blocked, replayed int

	posts, effects int // that the server has booked
	wrong          int // effects beyond the first of an unsafe or a keyed intent
	harmless       int // of a reading or an idempotent one
}

func newChaosTable() *chaosTable {
	return &chaosTable{
		faults: map[string]*chaosRow{}, classes: map[string]*chaosRow{}, manners: map[string]*chaosRow{}, versions: map[string]*chaosRow{},
	}
}

func (t *chaosTable) add(w *chaosWorld, in *chaosIntent, truth *chaosTruth) {
	t.total.add(in, truth)
	for _, s := range in.calls {
		t.late = max(t.late, s.late)
	}
	row(t.faults, w.kind(truth)).add(in, truth)
	row(t.classes, string(in.class)).add(in, truth)
	row(t.manners, string(in.manner)).add(in, truth)
	row(t.versions, describe(w.options)).add(in, truth)
}

func row(rows map[string]*chaosRow, name string) *chaosRow {
	if rows[name] == nil {
		rows[name] = &chaosRow{}
	}
	return rows[name]
}

func (r *chaosRow) add(in *chaosIntent, truth *chaosTruth) {
	r.intents++
	r.posts += truth.posts
	r.effects += truth.effects
	if in.class == policy.ReadOnly || in.class == policy.Idempotent {
		r.harmless += max(0, truth.effects-1)
	} else {
		r.wrong += max(0, truth.effects-1)
	}
	r.reruns += len(in.calls) - 1
	for _, s := range in.calls {
		r.calls++
		r.repeats += max(0, len(s.record.Attempts)-1)
		*r.of(s)++
	}
}

// of is the count that a call belongs to.
func (r *chaosRow) of(s *chaosSaid) *int {
	switch d := s.record.Delivery; {
	case s.replay:
		return &r.replayed
	case s.err == nil && s.record.Outcome == observe.ToolSuccess:
		return &r.success
	case d == observe.Answered:
		return &r.otherAnswer
	case s.record.Outcome == observe.Blocked:
		return &r.blocked
	case d == observe.NotSent || d == observe.Refused:
		return &r.notRun
	}
	return &r.unknown
}

// text renders the tables in Markdown.
func (t *chaosTable) text(from, to time.Time, machine *stalls) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d intents, %d calls, %d POSTs, %d effects in %v, of which the machine stalled %v; at most %v late\n",
		t.total.intents, t.total.calls, t.total.posts, t.total.effects, to.Sub(from).Round(time.Second), machine.within(from, to).Round(time.Second), t.late.Round(time.Millisecond))
	for _, part := range []struct {
		title string
		rows  map[string]*chaosRow
	}{{"first fault | tool runs", t.faults}, {"safety class", t.classes}, {"caller", t.manners}, {"server", t.versions}} {
		columns := strings.Split(part.title, " | ")
		fmt.Fprintf(&b, "\n| %s | %s |\n|%s\n", part.title, strings.Join(chaosColumns, " | "), strings.Repeat("---|", len(columns)+len(chaosColumns)))
		for _, name := range slices.Sorted(maps.Keys(part.rows)) {
			part.rows[name].write(&b, name)
		}
		t.total.write(&b, "all"+strings.Repeat(" |", len(columns)-1))
	}
	return b.String()
}

var chaosColumns = []string{
	"intents", "calls", "re-runs", "repeats", "success", "other answer", "refused, not sent", "unknown", "blocked", "replayed",
	"POSTs", "effects", "wrong", "harmless",
}

func (r *chaosRow) write(b *bytes.Buffer, name string) {
	fmt.Fprintf(b, "| %s |", name)
	for _, n := range []int{
		r.intents, r.calls, r.reruns, r.repeats, r.success, r.otherAnswer, r.notRun, r.unknown, r.blocked, r.replayed,
		r.posts, r.effects, r.wrong, r.harmless,
	} {
		fmt.Fprintf(b, " %d |", n)
	}
	b.WriteByte('\n')
}

// kind names the first fault that struck an intent.
func (w *chaosWorld) kind(truth *chaosTruth) string {
	for _, name := range truth.faults {
		for _, f := range append(w.plain, w.rounds...) {
			if f.Name == name {
				return chaosKind(&w.options, f)
			}
		}
	}
	if truth.posts == 0 {
		return "(nothing arrived) | -"
	}
	return "(none) | honestly"
}

// chaosKinds are kinds of faults by the beginning of their names; the first that
// fits counts.
var chaosKinds = []struct{ prefix, kind string }{
	{"status-401", "HTTP 401, 403"}, {"status-403", "HTTP 401, 403"},
	{"status-425", "HTTP 425, 429"}, {"status-429", "HTTP 425, 429"},
	{"status-404", "HTTP 404"}, {"status-5", "HTTP 5xx"},
	{"redirect-307", "redirect 307, 308"}, {"redirect-308", "redirect 307, 308"}, {"redirect", "redirect 301-303"},
	{"h2-protocol-error", "HTTP/2 PROTOCOL_ERROR"}, {"h2-", "HTTP/2 refused stream, GOAWAY"},
	{"session-forgotten", "session forgotten"}, {"round", "rounds"}, {"sse-resume", "stream cut and resumed"},
	{"too-large", "result too large"}, {"sse-huge", "result too large"},
	{"reset-after-headers", "answer cut"}, {"close-after-headers", "answer cut"}, {"reset-body", "answer cut"}, {"cut-", "answer cut"},
	{"reset", "connection reset"}, {"close", "connection closed"},
	{"body-", "body that is no JSON document"}, {"gzip-", "body that is no JSON document"},
	{"envelope-", "invalid envelope"}, {"event-envelope-", "invalid envelope"},
	{"result-", "invalid result"}, {"event-result-", "invalid result"}, {"sse-content-text", "invalid result"},
	{"jsonrpc-", "JSON-RPC error"}, {"sse-error", "JSON-RPC error"},
	{"tool-error", "tool error"}, {"event-tool-error", "tool error"}, {"sse-tool-error", "tool error"},
	{"sse-malformed", "stream without a usable answer"}, {"sse-wrong", "stream without a usable answer"},
	{"sse-", "stream without an answer"},
}

// chaosKind groups faults, and says when the tool ran.
func chaosKind(so *middlewaretest.Options, f middlewaretest.Fault) string {
	want := f.Expected(so)
	kind := "other"
	for _, k := range chaosKinds {
		if strings.HasPrefix(f.Name, k.prefix) {
			kind = k.kind
			break
		}
	}
	switch {
	case f.Needs&middlewaretest.NeedsDeadline != 0:
		kind = "silence"
	case want.Outcome == string(observe.ToolSuccess) && f.Status/100 != 3 && !strings.HasPrefix(f.Name, "sse-resume"):
		kind = "odd but whole answer"
	case strings.HasPrefix(f.Name, "status-4") && kind == "other":
		kind = "other 4xx, " + want.Delivery
	case kind == "JSON-RPC error":
		kind += ", " + want.Delivery
	}
	return kind + " | " + f.Execute.String()
}
