package middlewaretest_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

// keyed calls pay_keyed, with the key in one of the three places.
func keyed(t *testing.T, s *middlewaretest.Server, where, key, order string) answer {
	t.Helper()
	header, meta, args := "", "", `"order":"`+order+`"`
	switch where {
	case "meta":
		meta = `"io.github.surecall/idempotency-key":"` + key + `"`
	case "header":
		header = "Idempotency-Key: \"" + key + "\"\r\n"
	case "bare header":
		header = "Idempotency-Key: " + key + "\r\n"
	case "argument":
		args += `,"idempotency_key":"` + key + `"`
	}
	return send(t, s, header, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay_keyed","arguments":{`+args+`},"_meta":{`+meta+`}}}`)
}

func TestKeys(t *testing.T) {
	s := middlewaretest.NewServer(nil)
	defer s.Close()
	for i, where := range []string{"meta", "header", "argument", "bare header"} {
		first, second := keyed(t, s, where, where, "o-1"), keyed(t, s, where, where, "o-1")
		if string(first.body) != string(second.body) || first.status != 200 {
			t.Errorf("%s: %s, then %s", where, first.body, second.body)
		}
		if n := s.Effects("pay_keyed"); n != i+1 {
			t.Errorf("%s: %d effects", where, n)
		}
		if all := s.Entries(); all[len(all)-2].Replayed || !all[len(all)-1].Replayed || all[len(all)-1].Executed {
			t.Errorf("%s: entries %+v", where, all[len(all)-2:])
		}
	}
	if got, want := s.EffectsByKey("pay_keyed"), map[string]int{"meta": 1, "header": 1, "argument": 1, "bare header": 1}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if a := keyed(t, s, "meta", "meta", "o-2"); !strings.Contains(string(a.body), "-32602") {
		t.Errorf("other arguments: %s", a.body)
	}
	if a := keyed(t, s, "argument", "meta", "o-1"); !strings.Contains(string(a.body), "pay_keyed done") || s.Effects("pay_keyed") != 4 {
		t.Errorf("the same key in another place: %s, %d effects", a.body, s.Effects("pay_keyed"))
	}
	keyed(t, s, "nowhere", "", "o-1")
	keyed(t, s, "nowhere", "", "o-1")
	if n := s.Effects("pay_keyed"); n != 6 {
		t.Errorf("without a key: %d effects", n)
	}
	s.ForgetAnswers()
	if keyed(t, s, "meta", "meta", "o-1"); s.Effects("pay_keyed") != 7 {
		t.Errorf("a key that was forgotten: %d effects", s.Effects("pay_keyed"))
	}
}

// TestKeyUnderFault: a call that was cut after the tool ran can be repeated with
// its key.
func TestKeyUnderFault(t *testing.T) {
	s := middlewaretest.NewServer(nil)
	defer s.Close()
	s.Script("pay_keyed", middlewaretest.Reset().Executed(), middlewaretest.Status(502), middlewaretest.Status(504).ExecutedLater())
	for range 3 {
		keyed(t, s, "meta", "k", "o")
	}
	if a := keyed(t, s, "meta", "k", "o"); a.status != 200 || s.Effects("pay_keyed") != 1 {
		t.Errorf("status %d, %d effects", a.status, s.Effects("pay_keyed"))
	}
}

// TestConcurrentKeys: calls with one key wait for the first of them.
func TestConcurrentKeys(t *testing.T) {
	release := make(chan struct{})
	tool := middlewaretest.Tool{Name: "held", Keyed: true, Run: func(_ ctx, _ middlewaretest.Call) middlewaretest.Result {
		<-release
		return middlewaretest.Result{Text: "done"}
	}}
	s := middlewaretest.NewServer(&middlewaretest.Options{Tools: []middlewaretest.Tool{tool}})
	defer s.Close()
	done := make(chan string)
	for range 5 {
		go func() {
			resp, err := post(t.Context(), s, callBody("held", `"arguments":{"idempotency_key":"k"},`), false)
			if err != nil {
				done <- err.Error()
				return
			}
			resp.Body.Close()
			done <- resp.Status
		}()
	}
	eventually(t, func() bool { return s.Posts("held") == 5 })
	if s.Effects("held") != 0 {
		t.Error("an effect before the tool has ended")
	}
	close(release)
	for range 5 {
		if status := <-done; status != "200 OK" {
			t.Error(status)
		}
	}
	if n := s.Effects("held"); n != 1 {
		t.Errorf("%d effects", n)
	}
}
