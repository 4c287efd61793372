package surecall_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/middleware/middlewaretest"
	"github.com/surecall/surecall/policy"
)

// TestLimits shows what README.md says of servers that lie: an unsafe tool that ran
// runs again where its answer says that it did not run.
func TestLimits(t *testing.T) {
	disbelieve := &policy.Policy{Rules: []policy.Rule{{Settings: policy.Settings{
		Retry: policy.Retry{Throttled: new(false)},
	}}}}
	for _, tt := range []struct {
		name    string
		policy  *policy.Policy
		lie     middlewaretest.Fault
		effects int
	}{
		{"429 is believed", nil, middlewaretest.Status(429).Executed(), 2},
		{"425 is believed", nil, middlewaretest.Status(425).Executed(), 2},
		{"429 is not believed", disbelieve, middlewaretest.Status(429).Executed(), 1},
		{"425 is not believed", disbelieve, middlewaretest.Status(425).Executed(), 1},
		{"307 is believed", nil, middlewaretest.Redirect(307, false).Executed(), 2},
		{"307 to another origin is not followed", nil, middlewaretest.Redirect(307, true).Executed(), 1},
		{"401 is believed", nil, middlewaretest.Status(401).Executed(), 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := middlewaretest.NewServer(nil)
			defer server.Close()
			stack := middleware.New(&middleware.Options{Policy: tt.policy})
			client := newClient()
			client.AddSendingMiddleware(stack.Middleware()...)
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
				Endpoint: server.URL(), HTTPClient: stack.HTTPClient(nil), OAuthHandler: signIn{},
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			server.Script("pay", tt.lie)
			_, err = pay(t.Context(), session)
			if n := server.Effects("pay"); n != tt.effects {
				t.Errorf("%d effects, want %d (%v)", n, tt.effects, err)
			}
		})
	}
}

// signIn is an authorization that always succeeds.
type signIn struct{}

func (signIn) TokenSource(context.Context) (oauth2.TokenSource, error) {
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "t"}), nil
}

func (signIn) Authorize(_ context.Context, _ *http.Request, resp *http.Response) error {
	return resp.Body.Close()
}
