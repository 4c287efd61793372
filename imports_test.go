package surecall_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/surecall/surecall"

// forbidden are the parts of this module that a package must not import: imports
// point from middleware to policy to observe, and from middleware to idempotency.
var forbidden = map[string][]string{
	"observe":                   {"policy", "idempotency", "middleware"},
	"idempotency":               {"observe", "policy", "middleware"},
	"policy":                    {"idempotency", "middleware"},
	"middleware":                {"middleware/middlewaretest", "example"},
	"middleware/middlewaretest": {""},
}

func TestImportsPointOneWay(t *testing.T) {
	for dir, others := range forbidden {
		for _, f := range sources(t, dir) {
			for _, spec := range f.Imports {
				path, _ := strconv.Unquote(spec.Path.Value)
				for _, other := range others {
					if within(path, strings.TrimSuffix(module+"/"+other, "/")) {
						t.Errorf("%s imports %s", dir, path)
					}
				}
			}
		}
	}
}

func within(path, parent string) bool { return path == parent || strings.HasPrefix(path, parent+"/") }

// thirdParty are the modules that the packages which hosts import may use, and what
// for: whatever stands here comes with this library into every host.
var thirdParty = map[string]string{
	"github.com/modelcontextprotocol/go-sdk": "the client that is wrapped",
	"github.com/sony/gobreaker/v2":           "circuit breakers",
	"golang.org/x/time/rate":                 "rate limiters",
	"github.com/gowebpki/jcs":                "canonical JSON (RFC 8785), for the fingerprints of calls",
	"go.yaml.in/yaml/v3":                     "policy files, in YAML or JSON",
}

func TestDependenciesAreFew(t *testing.T) {
	used := map[string]bool{}
	for _, dir := range hostPackages(t) {
		for _, f := range sources(t, dir) {
			for _, spec := range f.Imports {
				path, _ := strconv.Unquote(spec.Path.Value)
				if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") || within(path, module) {
					continue
				}
				name := moduleOf(path)
				if used[name] = true; thirdParty[name] == "" {
					t.Errorf("%s imports %s", dir, path)
				}
			}
		}
	}
	for name := range thirdParty {
		if !used[name] {
			t.Errorf("%s is not used", name)
		}
	}
}

// moduleOf is the module on the list that a package belongs to, or the package.
func moduleOf(path string) string {
	for name := range thirdParty {
		if within(path, name) {
			return name
		}
	}
	return path
}

// hostPackages are the folders of this module's packages, without the examples.
func hostPackages(t *testing.T) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "example" || path != "." && isOther(path)):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			dirs = append(dirs, filepath.Dir(path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// isOther reports whether a folder holds another module, or nothing of Go's.
func isOther(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	base := filepath.Base(dir)
	return err == nil || base == "testdata" || strings.HasPrefix(base, ".") || base == "node_modules"
}

// The test server is for users' own tests as well, and brings nothing with it.
func TestTestServerNeedsOnlyTheStandardLibrary(t *testing.T) {
	for _, f := range sources(t, "middleware/middlewaretest") {
		for _, spec := range f.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") {
				t.Errorf("middlewaretest imports %s", path)
			}
		}
	}
}

// impure are the names, by import path, that make a function more than a function
// of its arguments; nil is all of the package.
var impure = map[string][]string{
	"time":         {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"net/http":     {"Client", "DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm", "NewRequest", "NewRequestWithContext", "RoundTripper", "Transport", "Server", "ListenAndServe"},
	"net":          {"Dial", "DialTimeout", "Dialer", "Listen", "LookupHost"},
	"math/rand":    nil,
	"math/rand/v2": nil,
	"crypto/rand":  nil,
	"os":           nil,
}

// shell is what is allowed all the same: the thin layer around a pure core.
var shell = map[string]string{
	"policy os.Open": "policy.Load reads a file and hands its text to policy.Parse",
}

// mayStartGoroutine is the one function that does: the queue for handlers of records
// that must not hold up a call.
const mayStartGoroutine = "NewQueue"

func TestPolicyAndObserveArePure(t *testing.T) {
	for _, dir := range []string{"policy", "observe"} {
		for _, f := range sources(t, dir) {
			names := packageNames(f)
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					return n.Name.Name != mayStartGoroutine
				case *ast.GoStmt:
					t.Errorf("%s starts a goroutine", dir)
				case *ast.SelectorExpr:
					if use := impureUse(n, names); use != "" && shell[dir+" "+use] == "" {
						t.Errorf("%s uses %s", dir, use)
					}
				}
				return true
			})
		}
	}
}

// impureUse returns what is used, or "".
func impureUse(s *ast.SelectorExpr, names map[string]string) string {
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return ""
	}
	path := names[x.Name]
	some, listed := impure[path]
	if !listed || some != nil && !slices.Contains(some, s.Sel.Name) {
		return ""
	}
	return path + "." + s.Sel.Name
}

// packageNames maps the names by which a file knows its imports to their paths.
func packageNames(f *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range f.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		name := filepath.Base(strings.TrimSuffix(path, "/v2"))
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = path
	}
	return names
}

// sources parses the files of a package, without its tests.
func sources(t *testing.T, dir string) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(filepath.FromSlash(dir), "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}
