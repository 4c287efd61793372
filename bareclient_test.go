package surecall_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

// What README.md says of the SDK's client without this library (go-sdk v1.8.0).

// connectBare connects a client without this library.
func connectBare(t *testing.T, base http.RoundTripper) (*middlewaretest.Server, *mcp.ClientSession) {
	t.Helper()
	server := middlewaretest.NewServer(nil)
	t.Cleanup(server.Close)
	session, err := newClient().Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: server.URL(), HTTPClient: &http.Client{Transport: base},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return server, session
}

func fault(t *testing.T, name string) middlewaretest.Fault {
	t.Helper()
	f, ok := middlewaretest.FaultNamed(name)
	if !ok {
		t.Fatalf("no fault %s", name)
	}
	return f
}

func pay(ctx context.Context, s *mcp.ClientSession) (*mcp.CallToolResult, error) {
	return s.CallTool(ctx, &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"order": "7"}})
}

func TestBareRetryLoopPaysTwice(t *testing.T) {
	server, session := connectBare(t, nil)
	server.Script("pay", middlewaretest.Status(503).Executed())
	for range 2 {
		if _, err := pay(t.Context(), session); err == nil {
			break
		}
	}
	if n := server.Effects("pay"); n != 2 {
		t.Errorf("%d effects", n)
	}
}

func TestBareKeyHeaderPaysTwice(t *testing.T) {
	server, session := connectBare(t, withKey{http.DefaultTransport.(*http.Transport).Clone()})
	if _, err := pay(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	server.Reset()
	server.Script("pay", middlewaretest.Reset().Executed())
	if _, err := pay(t.Context(), session); err != nil || server.Effects("pay") != 2 {
		t.Errorf("%d effects, %v", server.Effects("pay"), err)
	}
}

// withKey adds an idempotency key header.
type withKey struct{ http.RoundTripper }

func (w withKey) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Idempotency-Key", `"k"`)
	return w.RoundTripper.RoundTrip(req)
}

func TestBareWrongIDHangs(t *testing.T) {
	server, session := connectBare(t, nil)
	server.Script("pay", fault(t, "envelope-wrong-id"))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := pay(ctx, session); !errors.Is(err, context.DeadlineExceeded) || server.Effects("pay") != 1 {
		t.Errorf("%v, %d effects", err, server.Effects("pay"))
	}
}

func TestBareBadAnswerEndsSession(t *testing.T) {
	for _, name := range []string{"body-malformed", "body-login-page"} {
		server, session := connectBare(t, nil)
		server.Script("pay", fault(t, name))
		if _, err := pay(t.Context(), session); err == nil {
			t.Errorf("%s: success", name)
		}
		if _, err := pay(t.Context(), session); err == nil {
			t.Errorf("%s: the session lives on", name)
		}
	}
}

func TestBareResultWithoutContentIsSuccess(t *testing.T) {
	server, session := connectBare(t, nil)
	server.Script("pay", fault(t, "result-content-missing"))
	if res, err := pay(t.Context(), session); err != nil || res.IsError {
		t.Errorf("%+v, %v", res, err)
	}
}
