package policy

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Marshal writes a policy as a file that [Parse] reads back as an equal policy: the
// same rules with the same settings, where every negative number that turns something
// off has become -1. A policy that [Policy.Validate] reports has no file, and gives
// that error.
func Marshal(p *Policy) ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	root := mapping()
	addPair(root, "version", scalar("!!int", fileVersion))
	if p != nil {
		writeRules(root, p.Rules)
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	if b.Len() > largestFile {
		return nil, fmt.Errorf("policy: the file would be larger than %d MiB", largestFile>>20)
	}
	return b.Bytes(), nil
}

func writeRules(root *yaml.Node, rules []Rule) {
	if n := len(rules) - 1; n >= 0 && rules[n].Name == sourceDefaults {
		defaults := mapping()
		writeGroup(defaults, shape(), reflect.ValueOf(rules[n].Settings))
		addPair(root, "defaults", defaults)
		rules = rules[:n]
	}
	if len(rules) == 0 {
		return
	}
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, r := range rules {
		rule := mapping()
		for _, pair := range [][2]string{{"name", r.Name}, {"server", r.Server}, {"tool", r.Tool}} {
			if pair[1] != "" {
				addPair(rule, pair[0], scalar("!!str", pair[1]))
			}
		}
		writeGroup(rule, shape(), reflect.ValueOf(r.Settings))
		list.Content = append(list.Content, rule)
	}
	addPair(root, "rules", list)
}

// writeGroup writes what is set, and nothing for what is not.
func writeGroup(to *yaml.Node, g *group, v reflect.Value) {
	for _, m := range g.members {
		of := v.Field(m.index)
		if of.IsZero() {
			continue
		}
		n := written(m, of)
		if m.group == nil || m.field != fieldNone || len(n.Content) > 0 {
			addPair(to, m.name, n)
		}
	}
}

// written is the value as a node: the other way round from [reader.value].
func written(m *member, v reflect.Value) *yaml.Node {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct:
		n := mapping()
		writeGroup(n, m.group, v)
		return n
	case reflect.Slice:
		return writtenList(m, v)
	case reflect.Map:
		return writtenTable(m, v)
	case reflect.String:
		return scalar("!!str", v.String())
	case reflect.Bool:
		return scalar("!!bool", strconv.FormatBool(v.Bool()))
	}
	return amountNode(m, v)
}

func writtenList(m *member, v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for i := range v.Len() {
		if e := v.Index(i); e.CanInt() {
			n.Content = append(n.Content, scalar("!!int", strconv.FormatInt(e.Int(), 10)))
		} else {
			n.Content = append(n.Content, written(m, e))
		}
	}
	return n
}

func writtenTable(m *member, v reflect.Value) *yaml.Node {
	n := mapping()
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, k := range keys {
		addPair(n, k.String(), written(m, v.MapIndex(k)))
	}
	return n
}

func amountNode(m *member, v reflect.Value) *yaml.Node {
	tag, text := "!!str", ""
	switch {
	case v.CanInt() && v.Int() < 0, v.CanFloat() && v.Float() < 0:
		text = offWord
	case v.Type() == reflect.TypeFor[time.Duration]():
		text = writeDuration(time.Duration(v.Int()))
	case m.form == "rate":
		text = writeRate(v.Float())
	case m.form == "size":
		text = writeSize(v.Int())
	case v.CanInt():
		tag, text = "!!int", strconv.FormatInt(v.Int(), 10)
	default:
		tag, text = "", writeNumber(v.Float())
	}
	return scalar(tag, text)
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }

func scalar(tag, text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
}

func addPair(to *yaml.Node, name string, value *yaml.Node) {
	to.Content = append(to.Content, scalar("!!str", name), value)
}
