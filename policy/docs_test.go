package policy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/surecall/surecall/policy"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The page names every setting, and its example is the one that is compiled.
func TestPageIsInStep(t *testing.T) {
	page := read(t, "../docs/policy.md")
	for _, name := range policy.Fields() {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/policy.md says nothing of %s", name)
		}
	}
	_, after, _ := strings.Cut(page, "```go\n")
	example, _, found := strings.Cut(after, "```")
	if !found || strings.TrimSpace(example) == "" {
		t.Fatal("docs/policy.md has no example")
	}
	compiled := strings.ReplaceAll(read(t, "example_test.go"), "\n\t", "\n")
	if !strings.Contains(compiled, example) {
		t.Error("the example of docs/policy.md is not that of example_test.go")
	}
}

// block is the first block of the page that begins so.
func block(t *testing.T, page, begin string) string {
	t.Helper()
	_, after, found := strings.Cut(page, begin)
	text, _, closed := strings.Cut(after, "```")
	if !found || !closed {
		t.Fatalf("docs/policy.md has no block %q", begin)
	}
	return text
}

// What the page shows of reading and explaining is what is read and explained.
func TestPageShowsWhatIs(t *testing.T) {
	page := read(t, "../docs/policy.md")
	text := parse(t, block(t, page, "```yaml\n")).Explain("bank", "pay_bill", nil).String()
	for line := range strings.Lines(block(t, page, "```text\nThe policy")) {
		if !strings.Contains(text, line) {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
	_, err := policy.Parse("policy.yaml", []byte(`version: 1
rules:
  - name: pays
    safty: keyed
    retry:
      repeats: 0
  - name: all
    safety: read_only
  - tool: get_*
    safety: read_only
`))
	if want := "policy.yaml" + block(t, page, "```text\npolicy.yaml"); err == nil || err.Error()+"\n" != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// The page and the type say the same of what off means.
func TestPageSaysWhatIsOff(t *testing.T) {
	page := read(t, "../docs/policy.md")
	for _, name := range policy.Fields() {
		off := memberAt(name).Off
		_, row, _ := strings.Cut(page, "| `"+name+"` |")
		row, _, _ = strings.Cut(row, "\n")
		cells := strings.Split(row, "|")
		if len(cells) != 4 {
			t.Errorf("%s: the row is %q", name, row)
			continue
		}
		if last := strings.TrimSpace(cells[2]); off != "" && last != off {
			t.Errorf("%s: off is %q, on the page %q", name, off, last)
		}
	}
}
