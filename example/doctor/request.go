package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A request is one call that was asked for.
type request struct {
	name      string
	arguments json.RawMessage // a JSON object as it was written, or nil
}

// parseRequest reads NAME[=JSON]. The request has its name also with an error.
func parseRequest(s string) (request, error) {
	name, text, given := strings.Cut(s, "=")
	r := request{name: name}
	switch {
	case name == "":
		return r, errors.New("no tool's name")
	case !utf8.ValidString(s) || strings.ContainsFunc(name, unicode.IsControl):
		return r, errors.New("a control character in the name, or bytes that are not UTF-8")
	case !given:
		return r, nil
	}
	r.arguments = json.RawMessage(text)
	return r, checkObject(r.arguments)
}

// checkObject reports whether raw is one JSON object, and else where it fails.
func checkObject(raw []byte) error {
	var value json.RawMessage
	err := json.Unmarshal(raw, &value)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("the arguments are not JSON, at byte %d of %d: %w", syntax.Offset, len(raw), err)
	case err != nil:
		return fmt.Errorf("the arguments are not JSON: %w", err)
	case bytes.TrimSpace(value)[0] != '{':
		return errors.New("the arguments are JSON, but not an object: {...}")
	}
	return nil
}

func (r request) params() *mcp.CallToolParams {
	p := &mcp.CallToolParams{Name: r.name}
	if r.arguments != nil {
		p.Arguments = r.arguments
	}
	return p
}
