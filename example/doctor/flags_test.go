package main

import (
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/surecall/surecall/internal/plaintext"
	"github.com/surecall/surecall/policy"
)

func TestParse(t *testing.T) {
	o, err := parse([]string{
		"-endpoint", "http://127.0.0.1:1/mcp", "-list", "-json", "-timeout", "3s", "-parallel", "4",
		"-protocol", "2025-11-25", "-elicit", "accept", "-surface", "model",
		"-call", "a", "-call", `b={"x":"="}`,
		"-safety", "pay*=keyed", "-safety", "*=read_only",
		"-header", "Authorization: Bearer a:b", "-header", "X-Two:1", "-header", "X-Two: 2",
	})
	if err != nil {
		t.Fatal(err)
	}
	if o.endpoint.Path != "/mcp" || !o.list || !o.json || o.timeout != 3*time.Second || o.parallel != 4 ||
		o.protocol != "2025-11-25" || o.elicit != elicitAccept {
		t.Errorf("options %+v", o)
	}
	if len(o.calls) != 2 || o.calls[0].name != "a" || o.calls[0].arguments != nil || string(o.calls[1].arguments) != `{"x":"="}` {
		t.Errorf("calls %q", o.calls)
	}
	if h := o.headers; h.Get("Authorization") != "Bearer a:b" || len(h["X-Two"]) != 2 {
		t.Errorf("headers %v", h)
	}
	for tool, want := range map[string]string{"pay_bill": "keyed by -safety pay*=keyed", "get": "read_only by -safety *=read_only"} {
		p := o.policy.Resolve("", tool, nil)
		if got := string(p.Safety) + " by " + p.Rule; got != want || p.Surface != policy.SurfaceModel {
			t.Errorf("%s is %s, %s; want %s", tool, got, p.Surface, want)
		}
	}
}

func TestParseDefaults(t *testing.T) {
	o, err := parse([]string{"-command", "server 'a b'", "-call", "t"})
	if err != nil {
		t.Fatal(err)
	}
	if len(o.command) != 2 || o.command[1] != "a b" || o.label() != "server" {
		t.Errorf("command %q, label %q", o.command, o.label())
	}
	if p := o.policy.Resolve("", "t", nil); o.timeout != 30*time.Second || o.parallel != 1 || o.elicit != elicitAsk ||
		p.Safety != policy.Unsafe || p.Rule != "default" || p.Surface != policy.SurfaceCaller {
		t.Errorf("options %+v, policy %+v", o, p)
	}
}

func TestParseErrors(t *testing.T) {
	server := []string{"-endpoint", "http://h/mcp"}
	both := append([]string{"-list"}, server...)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no server":          {[]string{"-list"}, "-endpoint or -command is needed"},
		"two servers":        {append([]string{"-command", "x", "-list"}, server...), "both -endpoint and -command"},
		"nothing to do":      {server, "-call or -list is needed"},
		"not a URL":          {[]string{"-endpoint", "http://h:x?key=hidden", "-list"}, "-endpoint is not the address"},
		"not HTTP":           {[]string{"-endpoint", "ftp://h/?key=hidden", "-list"}, "-endpoint is not the address"},
		"no host":            {[]string{"-endpoint", "localhost:80", "-list"}, "-endpoint is not the address"},
		"open quote":         {[]string{"-command", "a 'b", "-list"}, "the quote ' at byte 3 is not closed"},
		"unknown flag":       {append([]string{"-nope"}, both...), "-nope"},
		"word":               {append(both, "word"), `unexpected argument "word"`},
		"call without name":  {append([]string{"-call", `={}`}, server...), "-call 1 (): no tool's name"},
		"call, second":       {append([]string{"-call", "a", "-call", `b={"x":}`}, server...), "-call 2 (b): the arguments are not JSON, at byte 6 of 6"},
		"call, cut":          {append([]string{"-call", `b={"x"`}, server...), "-call 1 (b): the arguments are not JSON, at byte 4 of 4"},
		"call, empty":        {append([]string{"-call", `b=`}, server...), "-call 1 (b): the arguments are not JSON"},
		"call, two values":   {append([]string{"-call", `b={} {}`}, server...), "the arguments are not JSON, at byte 4 of 5"},
		"call, list":         {append([]string{"-call", `b=[1]`}, server...), "not an object"},
		"call, null":         {append([]string{"-call", `b= null`}, server...), "not an object"},
		"call, control":      {append([]string{"-call", "b\x1b[2J"}, server...), "-call 1 (b [2J): a control character"},
		"safety, form":       {append([]string{"-safety", "pay"}, both...), `-safety "pay" is not GLOB=CLASS`},
		"safety, class":      {append([]string{"-safety", "pay=safe"}, both...), `"safe" is not one of read_only`},
		"safety, glob":       {append([]string{"-safety", "{a,b}=unsafe"}, both...), "only * and ? are special"},
		"safety, twice":      {append([]string{"-safety", "a=unsafe", "-safety", "a=unsafe"}, both...), "same name"},
		"surface":            {append([]string{"-surface", "user"}, both...), `-surface "user"`},
		"elicit":             {append([]string{"-elicit", "yes"}, both...), `-elicit "yes"`},
		"timeout":            {append([]string{"-timeout", "0s"}, both...), "-timeout"},
		"timeout, form":      {append([]string{"-timeout", "soon"}, both...), "-timeout"},
		"parallel":           {append([]string{"-parallel", "0"}, both...), "-parallel"},
		"protocol":           {append([]string{"-protocol", "latest"}, both...), `-protocol "latest"`},
		"header, no colon":   {append([]string{"-header", "Bearer hidden"}, both...), "-header 1: no colon"},
		"header, name":       {append([]string{"-header", "X: 1", "-header", "X Y: hidden"}, both...), "-header 2: what stands before the colon"},
		"header, line break": {append([]string{"-header", "X: hidden\r\nY: 1"}, both...), "-header 1: the value holds a control character"},
		"header, stdio":      {[]string{"-command", "x", "-list", "-header", "X: hidden"}, "-header needs -endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tc.args)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want %q", err, tc.want)
			}
			if strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q shows a value, or is more than a line", err)
			}
			v := runDoctor(t, tc.args...)
			v.want(t, exitUnrun, tc.want)
			if v.stdout != "" || strings.Count(v.stderr, "\n") != 1 {
				t.Errorf("not one line on stderr: %q, %q", v.stdout, v.stderr)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	if _, err := parse([]string{"-h"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("error %v", err)
	}
	v := runDoctor(t, "-help")
	v.want(t, exitOK, "")
	if v.stdout != usage || v.stderr != "" {
		t.Errorf("stdout %q, stderr %q", v.stdout, v.stderr)
	}
	for line := range strings.Lines(usage) {
		if len(line) > plaintext.Columns+1 {
			t.Errorf("line of %d: %s", len(line)-1, line)
		}
	}
}
