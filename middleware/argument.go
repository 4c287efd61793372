package middleware

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/observe"
)

// pointer splits the policy's name of an argument into steps: a property, or a JSON
// Pointer (RFC 6901).
func pointer(path string) []string {
	if !strings.HasPrefix(path, "/") {
		return []string{path}
	}
	steps := strings.Split(path[1:], "/")
	for i, s := range steps {
		steps[i] = strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
	}
	return steps
}

// A keyArgument is the argument that the policy names for the key, in the call's
// arguments.
type keyArgument struct {
	steps  []string
	object map[string]any // the arguments, read from their JSON form
}

// keyArgument reads the arguments; nil if the policy names none.
func (cl *call) keyArgument() (*keyArgument, error) {
	path := cl.tool.Key.Argument
	if path == "" {
		return nil, nil
	}
	raw, err := json.Marshal(cl.params().Arguments)
	if err != nil {
		return nil, err
	}
	a := &keyArgument{steps: pointer(path)}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&a.object); err != nil {
		return nil, fmt.Errorf("the arguments are no object to put the key into (key.argument %q)", path)
	}
	return a, nil
}

// value is the key that the caller has set: "" for none, as a model fills a field that
// it leaves open. What is no text can neither be kept as the key nor replaced.
func (a *keyArgument) value() (string, error) {
	var v any = a.object
	for i, step := range a.steps {
		object, ok := v.(map[string]any)
		if !ok && v != nil {
			return "", fmt.Errorf("the argument %q is no object to put the key into (key.argument)", strings.Join(a.steps[:i], "/"))
		}
		v = object[step]
	}
	key, ok := v.(string)
	if !ok && v != nil {
		return "", fmt.Errorf("the argument %q holds something else than a text for a key (key.argument)", strings.Join(a.steps, "/"))
	}
	return key, nil
}

// with returns the arguments with the key in its place; "" takes the place away.
func (a *keyArgument) with(key string) map[string]any { return setAt(a.object, a.steps, key) }

func setAt(object map[string]any, steps []string, key string) map[string]any {
	object = maps.Clone(object)
	if object == nil {
		object = map[string]any{}
	}
	inner, _ := object[steps[0]].(map[string]any)
	switch {
	case len(steps) > 1 && (inner != nil || key != ""):
		object[steps[0]] = setAt(inner, steps[1:], key)
	case len(steps) > 1:
	case key == "":
		delete(object, steps[0])
	default:
		object[steps[0]] = key
	}
	return object
}

// checkArgument makes sure that the tool has the argument that the policy names: a
// server would ignore a key in another, or refuse the call. A schema that has not
// been seen is asked for once.
func (c *core) checkArgument(ctx context.Context, cl *call) error {
	path := cl.tool.Key.Argument
	if path == "" {
		return nil
	}
	schema, ok := c.schemas.find(target{cl.server.name, cl.tool.Name})
	if !ok {
		if err := c.fetchSchemas(ctx, cl); err != nil {
			return &schemaError{cl.tool.Name, path, err}
		}
		schema, _ = c.schemas.find(target{cl.server.name, cl.tool.Name})
	}
	if !hasProperty(schema, pointer(path)) {
		return fmt.Errorf("the tool %q has no argument %q, which the policy names for the idempotency key (key.argument)", cl.tool.Name, path)
	}
	return nil
}

// A schemaError says that the server could not be asked for a tool's input schema. What
// others said is the cause, which no text shows.
type schemaError struct {
	tool, argument string
	cause          error
}

func (e *schemaError) Error() string {
	return fmt.Sprintf("the input schema of the tool %q could not be asked for, which the policy's key.argument %q needs", e.tool, e.argument)
}

func (e *schemaError) Unwrap() error { return e.cause }

// attempt tells the failure of the question as that of the call, of which nothing was
// sent; nil where the server has answered.
func (e *schemaError) attempt(ctx context.Context) *attempt {
	if ctx.Err() != nil {
		return interrupted(ctx, theCall)
	}
	closed := errors.Is(e.cause, mcp.ErrConnectionClosed) // then the SDK sends nothing
	j := observe.Judge(nil, observe.Return{Err: e.cause, Wire: closed})
	if own, ok := ErrorFrom(e.cause); ok {
		j = own.Judgement()
	}
	if l := j.Outcome.Layer(); l != observe.LayerTransport && l != observe.LayerLocal {
		return nil
	}
	j.Delivery, j.Reason = observe.NotSent, "tools/list, which key.argument needs, failed: "+j.Reason
	return &attempt{Judgement: j, err: e.cause}
}

// fetchSchemas lists the server's tools until the call's own has come.
func (c *core) fetchSchemas(ctx context.Context, cl *call) error {
	if cl.session == nil {
		return nil
	}
	params := &mcp.ListToolsParams{}
	for range maxListPages {
		page, err := cl.session.ListTools(withRules(ctx, cl.rules), params)
		if err != nil {
			return err
		}
		for _, t := range page.Tools {
			c.learnTool(cl.server.name, t)
		}
		if _, found := c.schemas.find(target{cl.server.name, cl.tool.Name}); found || page.NextCursor == "" || page.NextCursor == params.Cursor {
			return nil
		}
		params = &mcp.ListToolsParams{Cursor: page.NextCursor}
	}
	return nil
}

// schemaNode is what is looked at of a JSON Schema.
type schemaNode struct {
	Properties map[string]*schemaNode `json:"properties"`
}

// hasProperty reports whether a schema describes the property.
func hasProperty(schema any, steps []string) bool {
	raw, err := json.Marshal(schema)
	if err != nil {
		return false
	}
	var node *schemaNode
	if json.Unmarshal(raw, &node) != nil {
		return false
	}
	for _, step := range steps {
		if node == nil {
			return false
		}
		next, ok := node.Properties[step]
		if !ok {
			return false
		}
		node = next
	}
	return true
}

// learnTool keeps what a server's tool says of itself.
func (c *core) learnTool(server string, t *mcp.Tool) {
	if t == nil {
		return
	}
	at := target{server, t.Name}
	c.hints.put(at, hintsOf(t))
	if t.InputSchema != nil {
		c.schemas.put(at, t.InputSchema)
	}
}
