package otelobserve_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// api are OpenTelemetry's packages that code here may import: what comes with them is
// in every host that imports this package.
var api = []string{
	"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/codes",
	"go.opentelemetry.io/otel/metric", "go.opentelemetry.io/otel/propagation", "go.opentelemetry.io/otel/trace",
}

func TestCodeNeedsTheAPIAlone(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no files")
	}
	used := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			if !strings.HasPrefix(path, "go.opentelemetry.io/") {
				continue
			}
			if used++; !slices.Contains(api, path) {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
	if used == 0 {
		t.Error("nothing of OpenTelemetry is imported")
	}
}
