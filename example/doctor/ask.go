package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/internal/plaintext"
)

// maxTries bounds how often a person is asked for one field.
const maxTries = 3

// A terminal is where a person answers. One question is asked at a time.
type terminal struct {
	in    io.Reader
	out   io.Writer
	start sync.Once
	lines chan string
	quit  chan struct{}
}

func newTerminal(in io.Reader, out io.Writer) *terminal {
	return &terminal{in: in, out: out, lines: make(chan string), quit: make(chan struct{})}
}

// isTerminal reports whether a person can be at the other end: a character device
// that is not the null device.
func isTerminal(in io.Reader) bool {
	f, ok := in.(interface{ Stat() (os.FileInfo, error) })
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

func (t *terminal) close() { close(t.quit) }

// ask puts a question, with its form unless it is about an address.
func (t *terminal) ask(ctx context.Context, p *mcp.ElicitParams, f *form) *mcp.ElicitResult {
	t.forget()
	fmt.Fprint(t.out, "\n"+plaintext.Paragraph("The server asks: ", quoted(p.Message, maxWords), 2))
	if f == nil {
		fmt.Fprintf(t.out, "It wants you to go%s\nOpen it yourself if you trust it.\n", shownURL(p))
	}
	yes, ok := t.yesNo(ctx, "Answer it? [y]es, [n]o: ")
	switch {
	case !ok:
		return &mcp.ElicitResult{Action: actionCancel}
	case !yes:
		return &mcp.ElicitResult{Action: actionDecline}
	case f == nil:
		return &mcp.ElicitResult{Action: actionAccept}
	}
	content := map[string]any{}
	for _, name := range f.names() {
		value, ok := t.field(ctx, f, name)
		if !ok {
			return &mcp.ElicitResult{Action: actionCancel}
		}
		if value != nil {
			content[name] = value
		}
	}
	return &mcp.ElicitResult{Action: actionAccept, Content: content}
}

func (t *terminal) yesNo(ctx context.Context, prompt string) (yes, ok bool) {
	for range maxTries {
		line, ok := t.prompt(ctx, prompt)
		if !ok {
			return false, false
		}
		if yes, err := parseBool(line); err == nil {
			return yes, true
		}
	}
	return false, false
}

// field asks for one field; nil leaves it out.
func (t *terminal) field(ctx context.Context, f *form, name string) (value any, ok bool) {
	fd := f.Properties[name]
	prompt := "  " + fd.prompt(name, f.required(name))
	for range maxTries {
		line, ok := t.prompt(ctx, prompt)
		switch {
		case !ok:
			return nil, false
		case line == "" && fd.Default != nil:
			return fd.Default, true
		case line == "" && !f.required(name):
			return nil, true
		}
		value, err := fd.parse(line)
		if err == nil {
			return value, true
		}
		fmt.Fprintf(t.out, "    %v\n", err)
	}
	return nil, false
}

// prompt asks for a line; false where there is none.
func (t *terminal) prompt(ctx context.Context, text string) (string, bool) {
	fmt.Fprint(t.out, text)
	t.start.Do(func() { go t.read() })
	select {
	case line, ok := <-t.lines:
		return strings.TrimSpace(line), ok
	case <-ctx.Done():
		return "", false
	}
}

// read hands on lines until the input ends or the terminal is closed.
func (t *terminal) read() {
	defer close(t.lines)
	s := bufio.NewScanner(t.in)
	for s.Scan() {
		select {
		case t.lines <- s.Text():
		case <-t.quit:
			return
		}
	}
}

// forget drops a line that was meant for a question whose time was over.
func (t *terminal) forget() {
	select {
	case <-t.lines:
	default:
	}
}

// prompt describes a field in one line.
func (f *field) prompt(name string, required bool) string {
	about := []string{plain(f.Type, maxName)}
	if required {
		about = append(about, "required")
	}
	if of := f.options(); len(of) > 0 {
		about = append(about, "of "+plain(fmt.Sprint(of), maxWords))
	}
	text := plain(name, maxName) + " (" + strings.Join(about, ", ") + ")"
	if f.Default != nil {
		text += " [" + plain(fmt.Sprint(f.Default), maxName) + "]"
	}
	return text + ": "
}

// parse reads what a person typed for the field.
func (f *field) parse(line string) (any, error) {
	switch f.Type {
	case "boolean":
		return parseBool(line)
	case "integer":
		n, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			return nil, errors.New("an integer, please")
		}
		return n, nil
	case "number":
		n, err := strconv.ParseFloat(line, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return nil, errors.New("a number, please")
		}
		return n, nil
	case "array":
		return f.parseList(line)
	}
	return f.choose(line)
}

func parseBool(line string) (bool, error) {
	switch strings.ToLower(line) {
	case "y", "yes", "true":
		return true, nil
	case "n", "no", "false":
		return false, nil
	}
	return false, errors.New("yes or no, please")
}

// parseList reads values with commas between them.
func (f *field) parseList(line string) (any, error) {
	list := []any{}
	for part := range strings.SplitSeq(line, ",") {
		value, err := f.choose(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, nil
}

// choose takes a text as it is, or one of the values on offer.
func (f *field) choose(text string) (any, error) {
	of := f.options()
	if len(of) == 0 {
		return text, nil
	}
	i := slices.IndexFunc(of, func(v any) bool { return fmt.Sprint(v) == text })
	if i < 0 {
		return nil, errors.New("one of those on offer, please")
	}
	return of[i], nil
}
