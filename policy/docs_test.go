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
