package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readAll reads no more than is needed to see that a file is too large.
func readAll(r io.Reader) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, largestFile+1))
}

// tree parses a file into nodes. It is nil for an empty file, and where something is
// wrong.
func (r *reader) tree(data []byte) *yaml.Node {
	if len(data) > largestFile {
		r.at(&yaml.Node{}, "", fmt.Sprintf("larger than %d MiB: split the policy", largestFile>>20))
		return nil
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		r.syntax(err, data)
		return nil
	}
	switch err := d.Decode(&second); {
	case err == nil:
		r.at(&second, "", "a second document: a file holds one policy, without --- in between")
		return nil
	case !errors.Is(err, io.EOF):
		r.syntax(err, data)
		return nil
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" && root.Value == "" {
		return nil // only comments, or a lone ---
	}
	return root
}

var (
	errorLine   = regexp.MustCompile(`^line (\d+): `)
	lostAnchor  = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
	ofTheParser = []string{
		"did not find expected '-' indicator", "did not find expected key", "did not find expected node content",
		"did not find expected ',' or ']'", "did not find expected ',' or '}'", "did not find expected <document start>",
	}
)

const globAdvice = "; a glob that begins with * must be quoted"

// syntax reports what the YAML library says. It gives a line at best: from 0 where
// its parser speaks, and from 1 where its scanner does.
func (r *reader) syntax(err error, data []byte) {
	problem := strings.TrimPrefix(err.Error(), "yaml: ")
	at := &yaml.Node{Line: 1, Column: 1}
	if m := errorLine.FindStringSubmatch(problem); m != nil {
		at.Line, _ = strconv.Atoi(m[1])
		problem = problem[len(m[0]):]
	}
	for _, p := range ofTheParser {
		if p == problem {
			at.Line++
		}
	}
	switch m := lostAnchor.FindStringSubmatch(problem); {
	case m != nil:
		at.Line, at.Column = find(data, "*"+m[1])
		problem = "*" + short(m[1]) + " refers to nothing" + globAdvice
	case strings.Contains(problem, "alphabetic or numeric character"):
		problem += globAdvice
	default:
		at.Column = firstColumn(data, at.Line)
	}
	r.at(at, "", "not YAML: "+problem)
}

// find returns line and column of a text, counted from 1.
func find(data []byte, text string) (line, column int) {
	before, _, _ := bytes.Cut(data, []byte(text))
	last := before[bytes.LastIndexByte(before, '\n')+1:]
	return bytes.Count(before, []byte("\n")) + 1, len([]rune(string(last))) + 1
}

// firstColumn is that of the first character of a line.
func firstColumn(data []byte, line int) int {
	for range line - 1 {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	return len(data) - len(bytes.TrimLeft(data, " \t")) + 1
}
