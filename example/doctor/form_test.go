package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"
)

func TestFilled(t *testing.T) {
	for schema, want := range map[string]string{
		`null`:              `{}`,
		`{}`:                `{}`,
		`{"properties":{}}`: `{}`,
		// Optional: the default, else a zero value.
		`{"properties":{"a":{"type":"string"},"b":{"type":"integer","default":3}}}`: `{"a":"","b":3}`,
		// Required: the default, else a zero value.
		`{"properties":{"a":{"type":"boolean","default":true}},"required":["a"]}`:                                             `{"a":true}`,
		`{"properties":{"a":{"type":"boolean"}},"required":["a"]}`:                                                            `{"a":false}`,
		`{"properties":{"a":{"type":"string"}},"required":["a"]}`:                                                             `{"a":""}`,
		`{"properties":{"a":{"type":"string","minLength":3}},"required":["a"]}`:                                               `{"a":"xxx"}`,
		`{"properties":{"a":{"type":"string","format":"email"}},"required":["a"]}`:                                            `{"a":"doctor@example.com"}`,
		`{"properties":{"a":{"type":"string","format":"date"}},"required":["a"]}`:                                             `{"a":"2000-01-01"}`,
		`{"properties":{"a":{"type":"string","enum":["x","y"]}},"required":["a"]}`:                                            `{"a":"x"}`,
		`{"properties":{"a":{"type":"string","oneOf":[{"const":"k","title":"K"}]}},"required":["a"]}`:                         `{"a":"k"}`,
		`{"properties":{"a":{"type":"number"}},"required":["a"]}`:                                                             `{"a":0}`,
		`{"properties":{"a":{"type":"number","minimum":1.5}},"required":["a"]}`:                                               `{"a":1.5}`,
		`{"properties":{"a":{"type":"integer","minimum":1.5}},"required":["a"]}`:                                              `{"a":2}`,
		`{"properties":{"a":{"type":"integer","maximum":-1.5}},"required":["a"]}`:                                             `{"a":-2}`,
		`{"properties":{"a":{"type":"array","items":{"type":"string","enum":["x","y"]}}},"required":["a"]}`:                   `{"a":[]}`,
		`{"properties":{"a":{"type":"array","minItems":1,"items":{"anyOf":[{"const":"x"},{"const":"y"}]}}},"required":["a"]}`: `{"a":["x"]}`,
		`{"properties":{"a":{"type":"array","minItems":9}},"required":["a"]}`:                                                 `{"a":[]}`,
		`{"properties":{"a":{"type":"string","minLength":999999999}},"required":["a"]}`:                                       `{"a":"` + strings.Repeat("x", maxFilled) + `"}`,
		`{"properties":{},"required":["a"]}`:                                                                                  `{}`,
	} {
		f := formOf(t, schema)
		got, err := json.Marshal(f.filled())
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", schema, got, err, want)
		}
	}
}

func formOf(t interface{ Fatal(...any) }, schema string) *form {
	var v any
	if err := json.Unmarshal([]byte(schema), &v); err != nil {
		t.Fatal(err)
	}
	f, err := readForm(v)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestReadFormErrors(t *testing.T) {
	for _, schema := range []any{"text", []any{1}, map[string]any{"properties": map[string]any{"a": map[string]any{"minimum": "1"}}}} {
		if f, err := readForm(schema); err == nil {
			t.Errorf("%v: %+v", schema, f)
		}
	}
}

// TestFilledFits: what a form is filled with passes the validation that the SDK makes
// of it.
func TestFilledFits(t *testing.T) {
	session := asking(t)
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(-5, 5).Draw(t, "minimum")
		high := low + 1 + rapid.Float64Range(0, 5).Draw(t, "range")
		length := rapid.IntRange(0, 20).Draw(t, "length")
		schema := json.RawMessage(fmt.Sprintf(`{"type":"object","required":["b","s","n","i","e","l"],"properties":{
			"b":{"type":"boolean"},"s":{"type":"string","minLength":%d},"e":{"type":"string","enum":["x","y"]},
			"n":{"type":"number","minimum":%g,"maximum":%g},"i":{"type":"integer","minimum":%g,"maximum":%g},
			"l":{"type":"array","minItems":%d,"items":{"type":"string","enum":["x","y"]}}}}`,
			length, low, high, low, high, length%3))
		res, err := session.Elicit(context.Background(), &mcp.ElicitParams{Mode: "form", Message: "?", RequestedSchema: schema})
		if err != nil || res.Action != actionAccept {
			t.Fatalf("%s: %+v, %v", schema, res, err)
		}
	})
}

// asking is a server's session with a client that fills forms.
func asking(t *testing.T) *mcp.ServerSession {
	t.Helper()
	ours, theirs := mcp.NewInMemoryTransports()
	server := mcp.NewServer(&mcp.Implementation{Name: "asks", Version: "1"}, nil)
	session, err := server.Connect(t.Context(), theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := newDoctor(&options{elicit: elicitAccept}, strings.NewReader(""), io.Discard, io.Discard)
	client, err := d.client().Connect(t.Context(), ours, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return session
}

func TestParseField(t *testing.T) {
	for _, tc := range []struct{ field, typed, want string }{
		{`{"type":"string"}`, "a b", `"a b"`},
		{`{"type":"boolean"}`, "Y", `true`},
		{`{"type":"boolean"}`, "", "yes or no"},
		{`{"type":"integer"}`, "-7", `-7`},
		{`{"type":"integer"}`, "1.5", "an integer"},
		{`{"type":"number"}`, "1.5", `1.5`},
		{`{"type":"number"}`, "NaN", "a number"},
		{`{"type":"string","enum":["x","y"]}`, "y", `"y"`},
		{`{"type":"string","enum":["x","y"]}`, "z", "one of those"},
		{`{"type":"array","items":{"enum":["x","y"]}}`, "x, y", `["x","y"]`},
		{`{"type":"array","items":{"enum":["x","y"]}}`, "x,z", "one of those"},
		{`{"type":"array"}`, "a,b", `["a","b"]`},
	} {
		var f field
		if err := json.Unmarshal([]byte(tc.field), &f); err != nil {
			t.Fatal(err)
		}
		value, err := f.parse(tc.typed)
		got, _ := json.Marshal(value)
		if err != nil {
			got = []byte(err.Error())
		}
		if !strings.HasPrefix(string(got), tc.want) {
			t.Errorf("%s, %q: %s, want %s", tc.field, tc.typed, got, tc.want)
		}
	}
}
