package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

// policyFile writes a policy file.
func policyFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPolicyFile: calls go by the file, and by what the command line says before it.
func TestPolicyFile(t *testing.T) {
	file := policyFile(t, `version: 1
rules:
  - {name: labels, server: prod, tool: set_*, safety: idempotent}
  - {server: prod, tool: pay, safety: read_only}
defaults: {surface: model}
`)
	for kind, o := range kinds() {
		t.Run(kind, func(t *testing.T) {
			s := newServer(t, o)
			for _, tool := range []string{"set_label", "pay"} {
				s.Script(tool, middlewaretest.Status(503))
			}
			v := runDoctor(t, "-endpoint", s.URL(), "-policy", file, "-server", "prod", "-safety", "pay=unsafe", "-json", "-call", "set_label", "-call", "pay")
			v.want(t, exitFailed, "1 of 2 calls did not end in TOOL_SUCCESS")
			all := v.records(t)
			if len(all) != 2 || all[0].Rule != "labels" || s.Posts("set_label") != 2 || all[1].Rule != "-safety pay=unsafe" || s.Posts("pay") != 1 {
				t.Errorf("%d and %d POSTs, records %+v", s.Posts("set_label"), s.Posts("pay"), all)
			}
			if all[1].ModelText == "" {
				t.Error("the file's surface does not count")
			}
			v = runDoctor(t, "-endpoint", s.URL(), "-policy", file, "-server", "prod", "-safety", "x=unsafe", "-list")
			if v.want(t, exitOK, ""); !strings.Contains(strings.Join(strings.Fields(v.stdout), " "), "pay read_only rules[1] -") {
				t.Errorf("the second rule of the file has another name: %s", v.stdout)
			}
			// By its own name the server is another.
			v = runDoctor(t, "-endpoint", s.URL(), "-policy", file, "-json", "-call", "set_label")
			if all = v.records(t); len(all) != 1 || all[0].Rule != "default" {
				t.Errorf("records %+v", all)
			}
		})
	}
}

func TestPolicyFileErrors(t *testing.T) {
	wrong := policyFile(t, "version: 1\nrules:\n  - {tool: a, safty: unsafe}\n  - {tool: b, safety: safe}\n")
	for want, args := range map[string][]string{
		":3:15: rule \"rules[0]\": \"safty\" is not a setting; did you mean safety? (and 1 more": {"-policy", wrong, "-explain", "a"},
		"no such file":                     {"-policy", wrong + "x", "-explain", "a"},
		"no server: -endpoint or -command": {"-policy", wrong, "-call", "a"},
	} {
		v := runDoctor(t, args...)
		v.want(t, exitUnrun, want)
		if v.stdout != "" || strings.Count(v.stderr, "\n") != 1 {
			t.Errorf("not one line on stderr: %q, %q", v.stdout, v.stderr)
		}
	}
}

func TestExplainByName(t *testing.T) {
	file := policyFile(t, "version: 1\nrules:\n  - {name: payments, server: bank, tool: pay_*, safety: keyed}\n")
	v := runDoctor(t, "-policy", file, "-server", "bank", "-explain", "pay_bill", "-explain", "send")
	v.want(t, exitOK, "")
	text := strings.Join(strings.Fields(v.stdout), " ")
	for _, want := range []string{
		`The policy for tool "pay_bill" of server "bank"`, "safety keyed " + strings.Join(strings.Fields(file+":3 payments"), " "),
		`The policy for tool "send" of server "bank"`, "safety unsafe default", "HTTP_ERROR 408, 500, 502-504, 520-524 (unknown) repeat after at most 200ms",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, v.stdout)
		}
	}
	if v.stderr != "" {
		t.Errorf("stderr %q", v.stderr)
	}
}

// TestExplainWithAServer takes what that says of its tools, where the policy trusts it,
// and calls nothing.
func TestExplainWithAServer(t *testing.T) {
	file := policyFile(t, "version: 1\ndefaults: {trust_annotations: true}\n")
	for kind, o := range kinds() {
		t.Run(kind, func(t *testing.T) {
			s := newServer(t, o)
			v := runDoctor(t, "-endpoint", s.URL(), "-policy", file, "-explain", "read_weather", "-explain", "nowhere")
			v.want(t, exitOK, `the server lists no tool "nowhere"`)
			text := strings.Join(strings.Fields(v.stdout), " ")
			for _, want := range []string{"safety read_only annotations", "safety unsafe default", `of server "` + s.URL() + `"`} {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, v.stdout)
				}
			}
			if s.Posts("read_weather") != 0 {
				t.Error("the tool was called")
			}
		})
	}
}

func TestLint(t *testing.T) {
	good := policyFile(t, "version: 1\nrules:\n  - {tool: get_*, safety: read_only}\n")
	v := runDoctor(t, "-lint", good)
	v.want(t, exitOK, "")
	if v.stdout != good+": nothing is wrong, 1 rule\n" || v.stderr != "" {
		t.Errorf("stdout %q, stderr %q", v.stdout, v.stderr)
	}
	wrong := policyFile(t, "version: 1\nrules:\n  - {tool: a, safty: unsafe}\n  - {tool: b, safety: safe}\n")
	v = runDoctor(t, "-lint", wrong, "-endpoint", "http://127.0.0.1:1/mcp", "-call", "a")
	v.want(t, exitFailed, "2 problems in "+wrong)
	if lines := strings.Split(v.stdout, "\n"); len(lines) != 3 || !strings.HasPrefix(lines[0], wrong+":3:15: ") || !strings.HasPrefix(lines[1], wrong+":4:") {
		t.Errorf("stdout %q", v.stdout)
	}
	v = runDoctor(t, "-lint", wrong+"x")
	v.want(t, exitUnrun, "no such file")
}

// TestLintWithAServer warns of what matches nothing there, and of what nothing matches.
func TestLintWithAServer(t *testing.T) {
	file := policyFile(t, `version: 1
rules:
  - {name: gets, tool: get_*, safety: read_only}
  - {name: reads, tool: read_*, safety: read_only}
  - {name: others, server: elsewhere, tool: zap, safety: read_only}
`)
	for kind, o := range kinds() {
		t.Run(kind, func(t *testing.T) {
			s := newServer(t, o)
			v := runDoctor(t, "-endpoint", s.URL(), "-lint", file, "-json")
			v.want(t, exitOK, "")
			if v.stdout != "" {
				t.Errorf("stdout %q", v.stdout)
			}
			for text, want := range map[string]bool{
				`warning: ` + file + `:3: rule "gets": matches none of the server's tools`: true,
				"warning: tool pay: no rule sets its safety, so it is unsafe":              true,
				"read_weather": false, `"reads"`: false, `"others"`: false,
			} {
				if strings.Contains(v.stderr, text) != want {
					t.Errorf("%q is there: %t, in\n%s", text, !want, v.stderr)
				}
			}
		})
	}
}
