package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime/debug"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/internal/plaintext"
	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/observe"
)

const clientName = "surecall-doctor"

// version is the module's version, as far as the build knows it.
func version() string {
	if b, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(b.Main.Version, "v") {
		return strings.TrimPrefix(b.Main.Version, "v")
	}
	return "devel"
}

// client makes a client that takes input requests of both modes: what it answers is
// the answerer's affair.
func (d *doctor) client() *mcp.Client {
	c := mcp.NewClient(&mcp.Implementation{Name: clientName, Version: version()}, &mcp.ClientOptions{
		ElicitationHandler: d.answerer.answer,
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{
			Form: &mcp.FormElicitationCapabilities{},
			URL:  &mcp.URLElicitationCapabilities{},
		}},
	})
	c.AddSendingMiddleware(d.stack.Middleware()...)
	c.AddSendingMiddleware(d.noteDiscovery)
	return c
}

// noteDiscovery keeps what server/discover failed with: the SDK then goes on with
// initialize, and reports of that alone (go-sdk v1.8.0).
func (d *doctor) noteDiscovery(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		if method == "server/discover" {
			d.undiscovered = err
		}
		return res, err
	}
}

// connect opens the session.
func (d *doctor) connect(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	if d.server != "" {
		within = observe.WithServer(within, d.server)
	}
	session, err := d.client().Connect(within, d.transport(), &mcp.ClientSessionOptions{ProtocolVersion: d.protocol})
	if err != nil {
		return fmt.Errorf("cannot connect to %s: %s", d.address(), d.whyUnconnected(within, err))
	}
	d.session = session
	d.introduce()
	return nil
}

func (d *doctor) transport() mcp.Transport {
	if d.endpoint == nil {
		return newProcess(d.stack, d.command, d.stderr)
	}
	client := d.stack.HTTPClient(nil)
	client.Transport = newWithHeaders(client.Transport, d.endpoint, d.headers)
	d.release = client.CloseIdleConnections
	return &mcp.StreamableClientTransport{Endpoint: d.endpoint.String(), HTTPClient: client}
}

// address names the server, without query and credentials.
func (o *options) address() string {
	if o.endpoint == nil {
		return plain(o.label(), 60)
	}
	return observe.RedactURL(o.endpoint)
}

// introduce says to whom the session is.
func (d *doctor) introduce() {
	r := d.session.InitializeResult()
	name := ""
	if s := r.ServerInfo; s != nil {
		name = fmt.Sprintf(", which calls itself %s", quoted(s.Name+" "+s.Version, 60))
	}
	fmt.Fprint(d.info, plaintext.Paragraph("", fmt.Sprintf("Connected to %s%s, by MCP %s.", d.address(), name, plain(r.ProtocolVersion, 20)), 0))
	if d.protocol != "" && d.protocol != r.ProtocolVersion {
		fmt.Fprintf(d.stderr, "doctor: the server speaks MCP %s, not %s as asked\n", plain(r.ProtocolVersion, 20), plain(d.protocol, 20))
	}
}

// whyUnconnected says why there is no session, with both ways that were tried.
func (d *doctor) whyUnconnected(ctx context.Context, err error) string {
	why := d.why(ctx, err)
	if d.undiscovered == nil || ctx.Err() != nil {
		return why
	}
	if first := d.why(ctx, d.undiscovered); first != why {
		return "server/discover: " + first + "; initialize: " + why
	}
	return why
}

// why says in a few words why a session, or a list, did not come about. The error's
// own words may be a server's.
func (d *doctor) why(ctx context.Context, err error) string {
	switch own, ok := middleware.ErrorFrom(err); {
	case interrupted(ctx):
		return "interrupted"
	case ctx.Err() != nil:
		return fmt.Sprintf("no answer within %s", d.timeout)
	case errors.Is(err, exec.ErrNotFound):
		return "there is no such program"
	case ok:
		return whyOurs(own)
	}
	return plain(err.Error(), maxWords)
}

// whyOurs tells an error of the guarded transport without what it advises for calls.
func whyOurs(e *observe.Error) string {
	text := string(e.Outcome)
	if e.Status/100 > 2 {
		text += fmt.Sprintf(" %d", e.Status)
	}
	text += ": " + e.Reason
	if e.Outcome == observe.NetworkError && e.Cause() != nil {
		text += ": " + e.Cause().Error()
	}
	return plain(text, maxWords)
}
