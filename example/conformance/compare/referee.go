package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A referee starts a client against a test server of its own and judges it.
type referee struct {
	command []string // and what comes before its arguments
	client  string   // the client's program
}

// A check is one thing that the referee looked at, or one that it saw. Times and
// bodies, which differ between any two runs, are left out.
type check struct {
	ID          string
	Description string
	Status      string // SUCCESS, FAILURE, WARNING, SKIPPED; INFO for what it saw
}

// A result is what became of one run.
type result struct {
	exit   int // of the referee: 0 if it was content
	checks []check
	told   string // what the client's host was told
}

// scenarios are the names of the scenarios for clients that the referee has.
func (r *referee) scenarios(ctx context.Context) (map[string]bool, error) {
	out, _, err := r.run(ctx, "list", "--client")
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "-" {
			known[f[1]] = true
		}
	}
	return known, nil
}

// judge runs a scenario with the client and its arguments.
func (r *referee) judge(ctx context.Context, scenario string, args ...string) (*result, error) {
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	// The referee splits the command at spaces, so that the path has none.
	client := strings.Join(append([]string{"./" + filepath.Base(r.client)}, args...), " ")
	out, exit, err := r.run(ctx, "client", "--command", client, "--scenario", scenario, "-o", dir)
	if err != nil {
		return nil, err
	}
	res := &result{exit: exit}
	if err := res.read(dir); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, indent(out))
	}
	return res, nil
}

// run starts the referee beside the client's program.
func (r *referee) run(ctx context.Context, args ...string) (out string, exit int, err error) {
	cmd := exec.CommandContext(ctx, r.command[0], append(r.command[1:len(r.command):len(r.command)], args...)...)
	cmd.Dir = filepath.Dir(r.client)
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	err = cmd.Run()
	var failed *exec.ExitError
	if errors.As(err, &failed) && failed.Exited() {
		return b.String(), failed.ExitCode(), nil
	}
	return b.String(), 0, err
}

// read takes a result from the one directory that the referee has written.
func (r *result) read(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("%d results of one run", len(files))
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, &r.checks); err != nil {
		return err
	}
	told, err := os.ReadFile(filepath.Join(filepath.Dir(files[0]), "stdout.txt"))
	r.told = strings.TrimSpace(string(told))
	return err
}
