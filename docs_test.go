package surecall_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// pages are the README and everything in docs/.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("docs/*.md")
	if err != nil || len(names) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	all := map[string]string{}
	for _, name := range append(names, "README.md") {
		all[name] = readFile(t, name)
	}
	return all
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Every Go code block of the pages stands, indented as it may be, in a test or an
// example, and so compiles.
func TestCodeBlocksCompile(t *testing.T) {
	compiled := compiledFiles(t)
	for name, page := range pages(t) {
		for _, block := range goBlocks(page) {
			if !slices.ContainsFunc(compiled, func(f []string) bool { return containsBlock(f, block) }) {
				t.Errorf("%s: a code block stands in no test or example:\n%s", name, strings.Join(block, "\n"))
			}
		}
	}
}

var goFence = regexp.MustCompile("(?s)```go\n(.*?)\n```")

func goBlocks(page string) [][]string {
	var blocks [][]string
	for _, m := range goFence.FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, strings.Split(m[1], "\n"))
	}
	return blocks
}

// compiledFiles are the tests and the examples of this module, by lines.
func compiledFiles(t *testing.T) [][]string {
	t.Helper()
	var files [][]string
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && (strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "example"+string(filepath.Separator)) && strings.HasSuffix(path, ".go")) {
			files = append(files, strings.Split(readFile(t, path), "\n"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// containsBlock reports whether a file holds the lines of a block, all indented by
// the same tabs.
func containsBlock(file, block []string) bool {
	for i := range len(file) - len(block) + 1 {
		indent, found := strings.CutSuffix(file[i], block[0])
		if found && strings.Trim(indent, "\t") == "" && equalLines(file[i:i+len(block)], block, indent) {
			return true
		}
	}
	return false
}

func equalLines(file, block []string, indent string) bool {
	for i, line := range block {
		if line != "" {
			line = indent + line
		}
		if file[i] != line {
			return false
		}
	}
	return true
}

func TestContainsBlock(t *testing.T) {
	file := []string{"func f() {", "\tif x {", "\t\ty()", "", "\t}", "}"}
	for _, tt := range []struct {
		name  string
		block []string
		want  bool
	}{
		{"indented", []string{"if x {", "\ty()", "", "}"}, true},
		{"not indented", file, true},
		{"changed", []string{"if x {", "\tz()"}, false},
		{"at another depth", []string{"if x {", "y()"}, false},
		{"a part of a line", []string{"x {"}, false},
		{"longer than the file", append(slices.Clone(file), "}"), false},
	} {
		if got := containsBlock(file, tt.block); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

var yamlFence = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Every policy of the pages is read without a complaint, and the README's is the
// sample that an example runs.
func TestPoliciesAreRead(t *testing.T) {
	read := 0
	for name, page := range pages(t) {
		for _, m := range yamlFence.FindAllStringSubmatch(page, -1) {
			if _, err := policy.Parse(name, []byte(m[1])); err != nil {
				t.Error(err)
			}
			if read++; name == "README.md" && m[1] != readFile(t, "policy/samples/ten_lines.yaml") {
				t.Error("the policy of README.md is not policy/samples/ten_lines.yaml")
			}
		}
	}
	if read < 2 {
		t.Errorf("%d policies", read)
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

// Every relative link of the pages leads to a file or a folder.
func TestLinksResolve(t *testing.T) {
	for name, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(page, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

var outcomeSection = regexp.MustCompile("(?m)^## `([A-Z_]+)`\n\nLayer: ([a-z]+)\\. Delivery: ")

// docs/outcomes.md has one section for each outcome, in their order, with its layer.
func TestOutcomesAreExplained(t *testing.T) {
	var got, want []string
	for _, m := range outcomeSection.FindAllStringSubmatch(readFile(t, "docs/outcomes.md"), -1) {
		got = append(got, m[1]+" "+m[2])
	}
	for _, o := range observe.Outcomes() {
		want = append(want, string(o)+" "+string(o.Layer()))
	}
	if !slices.Equal(got, want) {
		t.Errorf("sections %q, want %q", got, want)
	}
}

// docs/evidence.md names every member of a record.
func TestEvidenceNamesMembers(t *testing.T) {
	page := readFile(t, "docs/evidence.md")
	typ := reflect.TypeFor[observe.Record]()
	for i := range typ.NumField() {
		if name := typ.Field(i).Tag.Get("json"); !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/evidence.md says nothing of %s", name)
		}
	}
}

// The README's table names every outcome.
func TestReadmeNamesOutcomes(t *testing.T) {
	readme := readFile(t, "README.md")
	for _, o := range observe.Outcomes() {
		if !strings.Contains(readme, "`"+string(o)+"`") {
			t.Errorf("README.md says nothing of %s", o)
		}
	}
}
