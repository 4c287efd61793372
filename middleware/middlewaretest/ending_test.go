package middlewaretest_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

// post sends a call with net/http, with or without a body that can be sent again.
func post(ctx context.Context, s *middlewaretest.Server, body string, replayable bool) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL(), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if !replayable {
		r.GetBody = nil
	}
	return s.Client().Do(r)
}

// TestHTTP2Endings: the error codes that a client sees, and what net/http makes
// of them.
func TestHTTP2Endings(t *testing.T) {
	for _, c := range []struct {
		name         string
		ending       middlewaretest.Ending
		text         string
		replayed     bool // by net/http, if it can
		runs, counts int
	}{
		{"reset", middlewaretest.EndReset, "INTERNAL_ERROR", false, 0, 1},
		{"close", middlewaretest.EndClose, "INTERNAL_ERROR", false, 0, 1},
		{"protocol error", middlewaretest.EndProtocolError, "PROTOCOL_ERROR", true, 0, 2},
		{"refused stream", middlewaretest.EndRefusedStream, "REFUSED_STREAM", true, 0, 2},
		{"goaway", middlewaretest.EndGoAway, "cannot retry err", true, 0, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := middlewaretest.NewServer(&middlewaretest.Options{HTTP2: true})
			defer s.Close()
			f := middlewaretest.Fault{Name: c.name, Ending: c.ending, Execute: middlewaretest.Before}

			s.Script("pay", f)
			resp, err := post(t.Context(), s, callBody("pay", ""), false)
			if err == nil {
				t.Fatalf("status %d", resp.StatusCode)
			}
			if !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %v, want %s", err, c.text)
			}
			if s.Posts("pay") != 1 || s.Effects("pay") != 1 {
				t.Errorf("%d posts, %d effects", s.Posts("pay"), s.Effects("pay"))
			}

			s.Reset()
			s.Script("pay", f)
			resp, err = post(t.Context(), s, callBody("pay", ""), true)
			if (err == nil) != c.replayed {
				t.Fatalf("error %v, want a replay: %v", err, c.replayed)
			}
			if err == nil {
				resp.Body.Close()
			}
			if s.Posts("pay") != c.counts {
				t.Errorf("%d posts, want %d", s.Posts("pay"), c.counts)
			}
		})
	}
}

// TestHTTP2Neighbours: a stream that is reset with a code of its own is the right
// one of many.
func TestHTTP2Neighbours(t *testing.T) {
	s := middlewaretest.NewServer(&middlewaretest.Options{HTTP2: true})
	defer s.Close()
	s.Always("pay", middlewaretest.Fault{Name: "refused", Ending: middlewaretest.EndRefusedStream})
	errs := make(chan error)
	for i := range 40 {
		go func() {
			tool := "slow"
			if i%2 == 0 {
				tool = "pay"
			}
			args := fmt.Sprintf(`"arguments":{"ms":20,"n":%d},`, i/10) // some the same, some not
			resp, err := post(t.Context(), s, callBody(tool, args), false)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if refused := err != nil && strings.Contains(err.Error(), "REFUSED_STREAM"); refused != (tool == "pay") {
				errs <- errors.Join(errors.New(tool), err)
				return
			}
			errs <- nil
		}()
	}
	for range 40 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestRepeat: what is sent for ever ends when the client gives up.
func TestRepeat(t *testing.T) {
	s := middlewaretest.NewServer(nil)
	defer s.Close()
	f, _ := middlewaretest.FaultNamed("sse-comments-forever")
	s.Script("pay", f)
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := post(ctx, s, callBody("pay", ""), true)
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(resp.Body)
	for range 3 {
		if line, err := r.ReadString('\n'); err != nil || line != ": hi\n" {
			t.Fatalf("%q, %v", line, err)
		}
		_, _ = r.ReadString('\n')
	}
	cancel()
	resp.Body.Close()
}

func TestGzip(t *testing.T) {
	s := middlewaretest.NewServer(nil)
	defer s.Close()
	for name, want := range map[string]error{"gzip-correct": nil, "gzip-truncated": io.ErrUnexpectedEOF, "gzip-not-gzip": gzip.ErrHeader} {
		f, _ := middlewaretest.FaultNamed(name)
		s.Script("pay", f)
		a := send(t, s, "", callBody("pay", ""))
		r, err := gzip.NewReader(bytes.NewReader(a.body))
		if err == nil {
			_, err = io.ReadAll(r)
		}
		if !errors.Is(err, want) || a.header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	s := middlewaretest.NewServer(nil)
	defer s.Close()
	s.Script("pay", middlewaretest.RetryAfter(429, 1500*time.Millisecond), middlewaretest.RetryAfterDate(503, 90*time.Second))
	a := send(t, s, "", callBody("pay", ""))
	if got := a.header.Get("Retry-After"); a.status != 429 || got != "2" {
		t.Errorf("status %d, Retry-After %q", a.status, got)
	}
	before := time.Now()
	a = send(t, s, "", callBody("pay", ""))
	at, err := http.ParseTime(a.header.Get("Retry-After"))
	if wait := at.Sub(before); err != nil || a.status != 503 || wait < 90*time.Second || wait > 102*time.Second {
		t.Errorf("status %d, wait %v, %v", a.status, wait, err)
	}
}

// TestRedirect: a client that follows arrives, and where it does the tool runs.
func TestRedirect(t *testing.T) {
	for _, c := range []struct {
		fault   middlewaretest.Fault
		method  string
		effects int
		host    string
	}{
		{middlewaretest.Redirect(307, false), "POST", 1, "127.0.0.1"},
		{middlewaretest.Redirect(308, true), "POST", 1, "localhost"},
		{middlewaretest.Redirect(302, false), "GET", 0, "127.0.0.1"},
	} {
		t.Run(c.fault.Name, func(t *testing.T) {
			s := middlewaretest.NewServer(nil)
			defer s.Close()
			s.Always("pay", c.fault)
			resp, err := post(t.Context(), s, callBody("pay", ""), true)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			all := s.Entries()
			last := all[len(all)-1]
			if len(all) != 2 || last.HTTPMethod != c.method || last.Path != "/mcp/moved" || !strings.HasPrefix(last.Host, c.host) {
				t.Errorf("%d requests, the last %+v", len(all), last)
			}
			if s.Effects("pay") != c.effects {
				t.Errorf("%d effects, want %d", s.Effects("pay"), c.effects)
			}
		})
	}
}
