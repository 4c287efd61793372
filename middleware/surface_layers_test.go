package middleware_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/observe"
	"github.com/surecall/surecall/policy"
)

// shown says for each surface the failures of which layers the model sees.
var shown = map[policy.Surface][]observe.Layer{
	policy.SurfaceCaller:         nil,
	policy.SurfaceModel:          {observe.LayerProtocol, observe.LayerTransport, observe.LayerLocal},
	policy.SurfaceModelProtocol:  {observe.LayerProtocol},
	policy.SurfaceModelTransport: {observe.LayerTransport, observe.LayerLocal},
	"nonsense":                   nil,
}

// TestSurfaceByLayer: a failure reaches the model where the surface shows its layer,
// and the caller everywhere else.
func TestSurfaceByLayer(t *testing.T) {
	hang := func(_ int, p posted) (*http.Response, error) { return p.hang(true) }
	for _, c := range []struct {
		outcome  observe.Outcome
		layer    observe.Layer // empty: nobody's but the caller's
		wire     func(int, posted) (*http.Response, error)
		tool     string // default set_label
		settings policy.Settings
		before   int // calls made before
	}{
		{outcome: observe.JSONRPCError, layer: observe.LayerProtocol, wire: answering(200, `{"jsonrpc":"2.0","id":%id%,"error":{"code":1,"message":"m"}}`)},
		{outcome: observe.MalformedJSON, layer: observe.LayerProtocol, wire: answering(200, `{`)},
		{outcome: observe.InvalidEnvelope, layer: observe.LayerProtocol, wire: answering(200, `{}`)},
		{outcome: observe.InvalidToolResult, layer: observe.LayerProtocol, wire: answering(200, `{"jsonrpc":"2.0","id":%id%,"result":{}}`)},
		{outcome: observe.HTTPError, layer: observe.LayerTransport, wire: answering(500, "")},
		{outcome: observe.UnexpectedContent, layer: observe.LayerTransport, wire: answering(200, "<html>", "Content-Type", "text/html")},
		{outcome: observe.StreamIncomplete, layer: observe.LayerTransport, wire: answering(202, "")},
		{outcome: observe.NetworkError, layer: observe.LayerTransport, wire: func(int, posted) (*http.Response, error) { return nil, errors.New("reset") }},
		{outcome: observe.Timeout, layer: observe.LayerLocal, wire: hang, settings: policy.Settings{Limits: policy.Limits{Attempt: time.Second}}},
		{outcome: observe.BreakerOpen, layer: observe.LayerLocal, wire: answering(500, ""), before: 1, settings: policy.Settings{Breaker: policy.Breaker{Failures: 1}}},
		{outcome: observe.RateLimited, layer: observe.LayerLocal, wire: answering(500, ""), before: 1, settings: policy.Settings{Limiter: policy.Limiter{Rate: 1, NoWait: new(true)}}},
		{outcome: observe.Blocked, layer: observe.LayerLocal, wire: answering(500, ""), before: 1, tool: "pay"},
		{outcome: observe.Canceled, wire: hang},
	} {
		for surface, layers := range shown {
			t.Run(string(c.outcome)+"/"+string(surface), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					settings, tool := c.settings, cmp.Or(c.tool, "set_label")
					settings.Surface = surface
					settings.Retry.Repeats = -1
					b := newBench(t, c.wire, policy.Rule{Settings: settings})
					defer b.session.Close()
					for range c.before {
						_, _, _ = b.call(tool, 0)
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if c.outcome == observe.Canceled {
						time.AfterFunc(time.Second, cancel)
					}
					res, rec, err := b.callIn(ctx, tool)
					if rec.Outcome != c.outcome {
						t.Fatalf("err %v, record %+v", err, rec)
					}
					checkShown(t, slices.Contains(layers, c.layer), res, rec, err)
				})
			})
		}
	}
}

// checkShown checks that the model is told of the failure, and the caller gets no
// error, or the other way round.
func checkShown(t *testing.T, toModel bool, res *mcp.CallToolResult, rec *observe.Record, err error) {
	t.Helper()
	var failure *observe.Error
	if !toModel {
		if res != nil || rec.ModelText != "" || !errors.As(err, &failure) || failure.Outcome != rec.Outcome {
			t.Errorf("not the caller's alone: result %+v, error %v, model text %q", res, err, rec.ModelText)
		}
		return
	}
	if err != nil || !res.IsError || len(res.Content) != 1 || res.Content[0].(*mcp.TextContent).Text != rec.ModelText || rec.ModelText == "" {
		t.Errorf("not shown to the model: error %v, result %+v, model text %q", err, res, rec.ModelText)
	}
	if failure, ok := middleware.FailureOf(res); !ok || failure.Outcome != rec.Outcome {
		t.Errorf("FailureOf: %v", failure)
	}
}
