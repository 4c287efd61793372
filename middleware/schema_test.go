package middleware_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/surecall/surecall/observe"
)

// recordSchema is the schema of records, ready to validate.
var recordSchema = sync.OnceValues(func() (*jsonschema.Resolved, error) {
	s := new(jsonschema.Schema)
	if err := json.Unmarshal([]byte(observe.RecordJSONSchema()), s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
})

// checked is a handler that holds every record against the schema, and its text
// against a terminal's width, before it hands it on.
func checked(t testing.TB, handle func(context.Context, *observe.Record)) func(context.Context, *observe.Record) {
	return func(ctx context.Context, r *observe.Record) {
		checkSchema(t, r)
		checkText(t, r)
		handle(ctx, r)
	}
}

func checkSchema(t testing.TB, r *observe.Record) {
	schema, err := recordSchema()
	if err != nil {
		t.Error(err)
		return
	}
	raw, err := json.Marshal(r)
	var value any
	if err == nil {
		err = json.Unmarshal(raw, &value)
	}
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		t.Errorf("a record departs from its schema: %v\n%s", err, raw)
	}
}

// TestSchemaRefuses: the check can fail.
func TestSchemaRefuses(t *testing.T) {
	schema, err := recordSchema()
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{`{}`, `{"schema":"io.github.surecall/record/2"}`} {
		var value any
		if json.Unmarshal([]byte(bad), &value) != nil || schema.Validate(value) == nil {
			t.Errorf("%s passes", bad)
		}
	}
}

// checkText holds a record's text against what a terminal needs.
func checkText(t testing.TB, r *observe.Record) {
	text := r.Text()
	if !strings.HasSuffix(text, "\n") {
		t.Errorf("the last line is not ended: %q", text)
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if n := utf8.RuneCountInString(line); n > 80 || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsGraphic(r) }) {
			t.Errorf("a line of %d columns: %q", n, line)
		}
	}
}
