package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/surecall/surecall/observe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTable(t *testing.T) {
	var out, errs bytes.Buffer
	if status := run(t.Context(), &out, &errs, calls()); status != 0 {
		t.Fatalf("status %d: %s", status, &errs)
	}
	text := out.String()
	for _, c := range calls() {
		if row := c.row(); !strings.Contains(text, row) {
			t.Errorf("no row %q", row)
		}
	}
	for _, l := range strings.Split(text, "\n") {
		if len(l) > 120 {
			t.Errorf("%d columns: %s", len(l), l)
		}
	}
	checkReadme(t, text)
	if t.Failed() {
		t.Log(text)
	}
}

// row is the row that the call must have, from its story on.
func (c *call) row() string {
	w := c.want
	return fmt.Sprintf("%-38s  %-18s  %-8s  %8d %5d %7d\n", c.story, w.outcome, w.delivery, w.attempts, w.posts, w.effects)
}

// checkReadme checks that the README shows lines of this very output.
func checkReadme(t *testing.T, text string) {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if number := fmt.Sprintf("makes %d calls", len(calls())); !strings.Contains(string(readme), number) {
		t.Errorf("README.md does not say %q", number)
	}
	_, after, _ := strings.Cut(string(readme), "```text\nTOOL ")
	shown, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("README.md does not show the table")
	}
	for _, l := range strings.Split("TOOL "+shown, "\n") {
		if !strings.Contains(text, l) {
			t.Errorf("README.md shows a line that is not printed: %s", l)
		}
	}
}

func TestWrongExpectationFails(t *testing.T) {
	for name, spoil := range map[string]func(*ending){
		"outcome":  func(e *ending) { e.outcome = observe.ToolSuccess },
		"delivery": func(e *ending) { e.delivery = observe.Refused },
		"attempts": func(e *ending) { e.attempts++ },
		"posts":    func(e *ending) { e.posts++ },
		"effects":  func(e *ending) { e.effects++ },
	} {
		t.Run(name, func(t *testing.T) {
			pay := calls()[1]
			spoil(&pay.want)
			var out, errs bytes.Buffer
			if status := run(t.Context(), &out, &errs, []call{pay}); status != 1 {
				t.Errorf("status %d", status)
			}
			if !strings.Contains(errs.String(), "call 1, pay: ended as") {
				t.Errorf("stderr: %s", &errs)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	paid := func(effects, arrived int) row {
		want := ending{observe.HTTPError, observe.Unknown, 1, 1, effects}
		return row{
			call: call{tool: "pay", want: want}, effects: effects, arrived: arrived,
			record: &observe.Record{
				Outcome: want.outcome, Delivery: want.delivery, Safety: "unsafe",
				Attempts: make([]observe.Attempt, 1), PostCount: 1,
			},
		}
	}
	for _, tt := range []struct {
		name   string
		row    row
		ledger int
		want   string
	}{
		{"well", paid(1, 1), 1, ""},
		{"ran twice, as expected", paid(2, 1), 2, "call 1, pay: an unsafe tool ran 2 times"},
		{"ran again later", paid(1, 1), 2, "pay ran 2 times, 1 of them after its call had ended"},
		{"posts that nobody recorded", paid(1, 2), 1, "call 1, pay: the record says 1 POSTs, the server saw 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := check([]row{tt.row}, func(string) int { return tt.ledger })
			if strings.Join(got, "; ") != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
