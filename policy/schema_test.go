package policy_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/surecall/surecall/policy"
)

const schemaFile = "policy.schema.json"

var update = flag.Bool("update", false, "write "+schemaFile+" anew")

// The published schema is the one that the Go type gives, with the words of its
// comments and of the table in docs/policy.md. A setting without a comment or a row
// fails here.
func TestSchemaIsInStep(t *testing.T) {
	w := schemaWriter{t: t, comments: comments(t), rows: settingRows(t)}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(w.document()); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(schemaFile, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, schemaFile) != b.String() {
		t.Errorf("%s is out of step; write it anew with go test ./policy -run Schema -update", schemaFile)
	}
}

type object = map[string]any

type schemaWriter struct {
	t        *testing.T
	comments map[string]string // by type and field, "Retry.Repeats", or type alone
	rows     map[string]string // the default, by setting
}

func (w *schemaWriter) document() object {
	settings := w.members(policy.Shape(), "Settings")
	rule := object{}
	for name, s := range settings {
		rule[name] = s
	}
	for _, name := range []string{"Name", "Server", "Tool"} {
		rule[strings.ToLower(name)] = object{"type": "string", "minLength": 1, "description": w.comment("Rule." + name)}
	}
	return object{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"$id":                  "https://github.com/surecall/surecall/policy/policy.schema.json",
		"title":                "surecall policy",
		"description":          "What may be repeated, how long to wait, what the model sees. For each setting on its own, the first rule that matches the tool and sets it decides.",
		"type":                 "object",
		"required":             []string{"version"},
		"additionalProperties": false,
		"properties": object{
			"version":  object{"const": 1, "description": "The version of the format."},
			"defaults": object{"type": "object", "minProperties": 1, "additionalProperties": false, "properties": settings, "description": "The last rule, which matches every tool of every server."},
			"rules": object{"type": "array", "description": "The first rule that matches and sets a setting decides it.",
				"items": object{"type": "object", "minProperties": 1, "additionalProperties": false, "properties": rule}},
		},
	}
}

func (w *schemaWriter) members(all []policy.Member, of string) object {
	out := object{}
	for _, m := range all {
		name := m.Path[strings.LastIndex(m.Path, ".")+1:]
		s := w.schema(m, m.Type)
		s["description"] = w.describe(m, of)
		out[name] = s
	}
	return out
}

func (w *schemaWriter) describe(m policy.Member, of string) string {
	if m.Field == "" {
		return w.comment(m.Type.Name())
	}
	goName := ""
	for name := range w.comments {
		if rest, found := strings.CutPrefix(name, of+"."); found && strings.EqualFold(rest, strings.ReplaceAll(m.Path[strings.LastIndex(m.Path, ".")+1:], "_", "")) {
			goName = name
		}
	}
	if goName == "" {
		w.t.Errorf("%s has no comment", m.Path)
		return ""
	}
	text := w.comment(goName)
	if m.Field == m.Path {
		row, found := w.rows[m.Path]
		if !found {
			w.t.Errorf("docs/policy.md has no row for %s", m.Path)
		}
		text += " Default: " + row + "."
	}
	if m.Off != "" {
		text += " off: " + m.Off + "."
	}
	return text
}

func (w *schemaWriter) comment(name string) string {
	if w.comments[name] == "" {
		w.t.Errorf("%s has no comment", name)
	}
	return w.comments[name]
}

func (w *schemaWriter) schema(m policy.Member, of reflect.Type) object {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if words := policy.Words(of, m.Form); words != nil && of.Kind() == reflect.String {
		return object{"enum": words}
	}
	switch of.Kind() {
	case reflect.Struct:
		return object{"type": "object", "minProperties": 1, "additionalProperties": false, "properties": w.members(m.Members, of.Name())}
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Int || of.Elem().Kind() == reflect.Int64 {
			return object{"type": "array", "items": object{"type": "integer"}}
		}
		return object{"type": "array", "items": w.schema(m, of.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": w.schema(m, of.Elem())}
	case reflect.Bool:
		return object{"enum": []any{true, false, "off"}}
	case reflect.String:
		return object{"type": "string", "minLength": 1}
	}
	return w.amount(m, of)
}

func (w *schemaWriter) amount(m policy.Member, of reflect.Type) object {
	pattern, number := "", object{}
	switch {
	case of == reflect.TypeFor[time.Duration]():
		pattern = `([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+`
	case m.Form == "rate":
		pattern = `[0-9]+(\.[0-9]+)?/[smh]`
	case m.Form == "size":
		pattern = `[0-9]+([KMG]iB|[kKMG]?B)`
	case of.Kind() == reflect.Float64:
		number = object{"type": "number", "exclusiveMinimum": 0}
	default:
		number = object{"type": "integer", "minimum": 1}
	}
	switch {
	case pattern != "" && m.Off != "":
		return object{"type": "string", "pattern": "^(" + pattern + "|off)$"}
	case pattern != "":
		return object{"type": "string", "pattern": "^" + pattern + "$"}
	case m.Off != "":
		return object{"anyOf": []object{number, {"const": "off"}}}
	}
	return number
}

// comments are the first sentences of the comments in the sources, with the names
// of the file for those of Go.
func comments(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok {
					all[s.Name.Name] = firstSentence(g.Doc.Text())
					fieldComments(s, all)
				}
			}
		}
	}
	return all
}

func fieldComments(s *ast.TypeSpec, all map[string]string) {
	st, ok := s.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range st.Fields.List {
		for _, n := range f.Names {
			all[s.Name.Name+"."+n.Name] = firstSentence(f.Doc.Text())
		}
	}
}

var sentence = regexp.MustCompile(`(?s)^(.*?[^.]\.)(\s|$)`)

func firstSentence(doc string) string {
	doc = strings.NewReplacer("[", "", "]", "", "\n", " ").Replace(doc)
	if m := sentence.FindStringSubmatch(doc); m != nil {
		return m[1]
	}
	return strings.TrimSpace(doc)
}

var settingRow = regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| [^|]* \\| ([^|]*) \\|")

// settingRows are the defaults in the table of docs/policy.md.
func settingRows(t *testing.T) map[string]string {
	rows := map[string]string{}
	for _, m := range settingRow.FindAllStringSubmatch(read(t, "../docs/policy.md"), -1) {
		rows[m[1]] = strings.ReplaceAll(strings.TrimSpace(m[2]), "`", "")
	}
	return rows
}

func schema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(read(t, schemaFile)), &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// fits reports what the schema has to say of a file.
func fits(s *jsonschema.Resolved, file []byte) error {
	var v any
	if err := yaml.Unmarshal(file, &v); err != nil {
		return err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	return s.Validate(v)
}

// What can be written fits the schema.
func TestSchemaFitsWhatIsWritten(t *testing.T) {
	s := schema(t)
	rapid.Check(t, func(t *rapid.T) {
		file, err := policy.Marshal(anyValidPolicy(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := fits(s, file); err != nil {
			t.Fatalf("%v\n%s", err, file)
		}
	})
}

// The schema sees what is wrong with the form of a file, as reading does.
func TestSchemaRefuses(t *testing.T) {
	s := schema(t)
	for _, rule := range []string{
		"safety: read-only", "safty: keyed", "retry: {repeats: 0}", "retry: {repeats: many}", "retry: {backoff: 5}", "retry: {backoff: 5 min}",
		"retry: {outcomes: [SESSION_LOST]}", "retry: {outcomes: TIMEOUT}", "retry: {statuses: [x]}", "retry: {tries: 1}", "retry: {}",
		"limiter: {rate: 10}", "limiter: {rate: 10/d}", "limiter: {burst: off}", "breaker: {open: off}", "strict: 1", "gate: none",
		"max_result: 64", "max_result: 1 MiB", "tolerate: [id]", "key: {header: 7}", "key: Idempotency-Key", "surface: [model]", "tool: 7", "server: ''",
	} {
		file := []byte("version: 1\nrules:\n  - strict: true\n    " + rule + "\n")
		if strings.HasPrefix(rule, "strict") {
			file = []byte("version: 1\nrules:\n  - " + rule + "\n")
		}
		if err := fits(s, file); err == nil {
			t.Errorf("the schema takes %s", rule)
		}
		if _, err := policy.Parse("f", file); err == nil {
			t.Errorf("reading takes %s", rule)
		}
	}
	for _, file := range []string{"version: 2", "rules: []", "version: 1\nrule: []", "version: 1\nrules: {tool: x}", "version: 1\ndefaults: {tool: x}"} {
		if err := fits(s, []byte(file)); err == nil {
			t.Errorf("the schema takes %q", file)
		}
		if _, err := policy.Parse("f", []byte(file)); err == nil {
			t.Errorf("reading takes %q", file)
		}
	}
}
