package middlewaretest_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

// TestClose: whatever hangs, Close ends it. That no goroutine is left is what
// TestMain checks.
func TestClose(t *testing.T) {
	for _, o := range []middlewaretest.Options{
		{}, {HTTP2: true}, {Stream: true},
		{Version: middlewaretest.Version20251125, Sessions: true, StandaloneSSE: true},
	} {
		t.Run(describe(o), func(t *testing.T) {
			s := middlewaretest.NewServer(&o)
			session := ""
			if o.Sessions {
				session = strings.TrimSuffix(strings.TrimPrefix(legacySession(t, s), "Mcp-Session-Id: "), "\r\n")
				go func() { _, _ = get(t.Context(), s, session) }()
				eventually(t, func() bool { return s.Subscribers() == 1 })
			}
			s.Always("pay", middlewaretest.Hang())
			s.Always("set_label", middlewaretest.Hang().Executed())
			s.Always("send_mail", middlewaretest.Stream("stalled", ": hi\n\n", middlewaretest.EndSilent))
			s.Always("read_weather", middlewaretest.Status(503).Delayed(1e12))
			ended := make(chan error)
			tools := []string{"pay", "set_label", "send_mail", "read_weather", "slow"}
			if o.Sessions {
				tools = append(tools, "ask")
			}
			for _, tool := range tools {
				go func() {
					resp, err := postInSession(context.Background(), s, session, callBody(tool, `"arguments":{"ms":600000},`))
					if err == nil {
						_, err = io.ReadAll(resp.Body)
						resp.Body.Close()
					}
					ended <- err
				}()
			}
			eventually(t, func() bool { return s.Counts().Posts >= len(tools) })
			s.Close()
			for range tools {
				if err := <-ended; err == nil {
					t.Error("an answer that was complete")
				}
			}
			s.Close()
			if s.Effects("slow") != 0 {
				t.Error("a tool that was cut off counts as an effect")
			}
		})
	}
}

func TestMounted(t *testing.T) {
	s := middlewaretest.NewUnstarted(nil)
	h := httptest.NewServer(s.Handler())
	defer h.Close()
	s.Script("pay", middlewaretest.Reset().Executed(), middlewaretest.Hang())
	if _, err := http.Post(h.URL+"/any", "application/json", strings.NewReader(callBody("pay", ""))); err == nil {
		t.Error("no reset")
	}
	ended := make(chan error)
	go func() {
		_, err := http.Post(h.URL, "application/json", strings.NewReader(callBody("pay", "")))
		ended <- err
	}()
	eventually(t, func() bool { return s.Posts("pay") == 2 })
	s.Close()
	if err := <-ended; err == nil || s.Effects("pay") != 1 {
		t.Errorf("error %v, %d effects", err, s.Effects("pay"))
	}
	if _, err := http.Post(h.URL, "application/json", strings.NewReader(callBody("pay", ""))); err == nil {
		t.Error("a closed server answers")
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestWithoutHijacker: a fault of the connection aborts the request where that is
// all that can be done.
func TestWithoutHijacker(t *testing.T) {
	s := middlewaretest.NewUnstarted(nil)
	defer s.Close()
	s.Script("pay", middlewaretest.Reset().Executed())
	defer func() {
		if recover() != http.ErrAbortHandler || s.Effects("pay") != 1 {
			t.Error("not aborted")
		}
	}()
	s.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/mcp", strings.NewReader(callBody("pay", ""))))
}

// TestDropConnections: answers on their way are cut, and the server goes on.
func TestDropConnections(t *testing.T) {
	s := middlewaretest.NewServer(nil)
	defer s.Close()
	s.Script("pay", middlewaretest.Hang())
	ended := make(chan error)
	go func() {
		_, err := post(t.Context(), s, callBody("pay", ""), false)
		ended <- err
	}()
	eventually(t, func() bool { return s.Posts("pay") == 1 })
	if n := s.Connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
	s.DropConnections()
	if err := <-ended; err == nil {
		t.Error("an answer")
	}
	eventually(t, func() bool { return s.Connections() == 0 })
	if a := send(t, s, "", callBody("pay", "")); a.status != 200 {
		t.Errorf("afterwards: %s", a.raw)
	}
}

func TestAuthorize(t *testing.T) {
	s := middlewaretest.NewServer(&middlewaretest.Options{Authorize: func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer good" {
			return true
		}
		http.Error(w, "who are you", http.StatusUnauthorized)
		return false
	}})
	defer s.Close()
	if a := send(t, s, "", callBody("pay", "")); a.status != 401 || s.Effects("pay") != 0 || s.Posts("pay") != 1 {
		t.Errorf("without a token: %s", a.raw)
	}
	if a := send(t, s, "Authorization: Bearer good\r\n", callBody("pay", "")); a.status != 200 {
		t.Errorf("with a token: %s", a.raw)
	}
}

func postInSession(ctx context.Context, s *middlewaretest.Server, session, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL(), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	return s.Client().Do(r)
}

func get(ctx context.Context, s *middlewaretest.Server, session string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Mcp-Session-Id", session)
	resp, err := s.Client().Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}
