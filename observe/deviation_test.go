package observe_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/surecall/surecall/observe"
)

func TestDeviationsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/reading.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range observe.Deviations() {
		if !strings.Contains(string(page), "`"+string(d)+"`") {
			t.Errorf("docs/reading.md does not name %s", d)
		}
	}
}

func TestDeviationsAreListed(t *testing.T) {
	source, err := os.ReadFile("deviation.go")
	if err != nil {
		t.Fatal(err)
	}
	all := observe.Deviations()
	if n := strings.Count(string(source), ` Deviation = "`); n != len(all) || n != len(slices.Compact(slices.Sorted(slices.Values(all)))) {
		t.Errorf("%d constants, %d listed", n, len(all))
	}
}
