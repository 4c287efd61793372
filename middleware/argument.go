package middleware

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
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

// argumentAt returns the value of an argument, or nil where there is none.
func argumentAt(arguments any, path string) any {
	if path == "" {
		return nil
	}
	var v any = asObject(arguments)
	for _, step := range pointer(path) {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[step]
	}
	return v
}

// withArgument returns the arguments with one more; the caller's stay as they are.
func withArgument(arguments any, path string, value any) any {
	return setAt(asObject(arguments), pointer(path), value)
}

func setAt(object map[string]any, steps []string, value any) map[string]any {
	object = maps.Clone(object)
	if object == nil {
		object = map[string]any{}
	}
	if len(steps) == 1 {
		object[steps[0]] = value
		return object
	}
	inner, _ := object[steps[0]].(map[string]any)
	object[steps[0]] = setAt(inner, steps[1:], value)
	return object
}

// asObject is the arguments as an object: as they are, or read from their JSON form
// with its numbers kept. It is nil for anything else.
func asObject(arguments any) map[string]any {
	if object, ok := arguments.(map[string]any); ok {
		return object
	}
	raw, err := json.Marshal(arguments)
	if err != nil {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	var object map[string]any
	if dec.Decode(&object) != nil {
		return nil
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
			return fmt.Errorf("the input schema of the tool %q could not be asked for, which the policy's key.argument %q needs: %w", cl.tool.Name, path, err)
		}
		schema, _ = c.schemas.find(target{cl.server.name, cl.tool.Name})
	}
	if !hasProperty(schema, pointer(path)) {
		return fmt.Errorf("the tool %q has no argument %q, which the policy names for the idempotency key (key.argument)", cl.tool.Name, path)
	}
	return nil
}

// fetchSchemas lists the server's tools; what comes is learned on the way up.
func (c *core) fetchSchemas(ctx context.Context, cl *call) error {
	if cl.session == nil {
		return nil
	}
	for t, err := range cl.session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		c.learnTool(cl.server.name, t)
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
	c.hints.put(target{server, t.Name}, hintsOf(t))
	if t.InputSchema != nil {
		c.schemas.put(target{server, t.Name}, t.InputSchema)
	}
}
