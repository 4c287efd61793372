package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// asServer is the argument that makes the test binary a server on stdio.
const asServer = "stdio-server"

// serveStdio is the SDK's own server, or with "deaf" one that reads the handshake and
// nothing after it.
func serveStdio(args []string) {
	fmt.Fprintln(os.Stderr, "the server's own words")
	if len(args) > 0 && args[0] == "deaf" {
		serveDeaf()
		return
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "stdio\x1b[31m", Version: "1"}, nil)
	type in struct {
		Text string `json:"text"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, in in) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "fail"},
		func(context.Context, *mcp.CallToolRequest, in) (*mcp.CallToolResult, any, error) {
			return nil, nil, errors.New("as asked")
		})
	mcp.AddTool(s, &mcp.Tool{Name: "die"},
		func(context.Context, *mcp.CallToolRequest, in) (*mcp.CallToolResult, any, error) {
			os.Exit(3)
			return nil, nil, nil
		})
	_ = s.Run(context.Background(), &mcp.StdioTransport{})
}

func serveDeaf() {
	in := bufio.NewScanner(os.Stdin)
	for _, answer := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"deaf","version":"1"}}}`,
		"", // notifications/initialized
	} {
		in.Scan()
		fmt.Println(answer)
	}
	time.Sleep(time.Minute)
}

// stdio is the value of -command for the test's own server.
func stdio(args ...string) string {
	return "'" + os.Args[0] + "' " + strings.Join(append([]string{asServer}, args...), " ")
}

func TestStdio(t *testing.T) {
	v := runDoctor(t, "-command", stdio(), "-list", "-json", "-safety", "echo=read_only",
		"-call", `echo={"text":"hi"}`, "-call", "fail={\"text\":\"\"}", "-call", "no_such")
	v.want(t, exitFailed, "2 of 3 calls did not end in TOOL_SUCCESS")
	want := "echo TOOL_SUCCESS answered; fail TOOL_ERROR answered; no_such JSONRPC_ERROR answered"
	if got := v.outcomes(t); got != want {
		t.Errorf("outcomes %s, want %s", got, want)
	}
	for _, text := range []string{"the server's own words\n", `calls itself "stdio [31m 1"`, "echo  read_only  -safety echo=read_only"} {
		if !strings.Contains(v.stderr, text) {
			t.Errorf("stderr lacks %q:\n%s", text, v.stderr)
		}
	}
}

func TestStdioText(t *testing.T) {
	v := runDoctor(t, "-command", stdio(), "-call", `echo={"text":"hi\u001b[2J there"}`)
	v.want(t, exitOK, "")
	for _, text := range []string{"echo  stdio · JSON-RPC ok · tool succeeded\n", "sent       1 attempt\n", `"hi [2J there"`} {
		if !strings.Contains(v.stdout, text) {
			t.Errorf("no %q in:\n%s", text, v.stdout)
		}
	}
}

func TestStdioServerDies(t *testing.T) {
	v := runDoctor(t, "-command", stdio(), "-json", "-call", `die={"text":""}`, "-call", `echo={"text":"hi"}`)
	v.want(t, exitFailed, "2 of 2 calls")
	if got, want := v.outcomes(t), "die NETWORK_ERROR unknown; echo SESSION_LOST not_sent"; got != want {
		t.Errorf("outcomes %s, want %s", got, want)
	}
}

// TestStdioServerDoesNotRead: more than a pipe holds, to a server that is deaf.
func TestStdioServerDoesNotRead(t *testing.T) {
	t.Parallel()
	started := time.Now()
	v := runDoctor(t, "-command", stdio("deaf"), "-protocol", "2025-11-25", "-timeout", "2s", "-json",
		"-call", `echo={"text":"`+strings.Repeat("x", 128<<10)+`"}`, "-call", "echo")
	v.want(t, exitFailed, "2 of 2 calls")
	if got, want := v.outcomes(t), "echo TIMEOUT unknown; echo TIMEOUT not_sent"; got != want {
		t.Errorf("outcomes %s, want %s", got, want)
	}
	// On a busy machine all is late; the server itself ends after a minute.
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestStdioNoServer(t *testing.T) {
	runDoctor(t, "-command", "/no/such/program x", "-list").want(t, exitUnrun, "cannot connect to program: ")
	runDoctor(t, "-command", "no-such-program-at-all", "-list").want(t, exitUnrun, "there is no such program")
	runDoctor(t, "-command", "true", "-list").want(t, exitUnrun, "cannot connect to true: ")
}
