package middlewaretest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

// elicit makes a client that answers every question in one way, and counts them.
func elicit(action string, content map[string]any) (*mcp.ClientOptions, *int) {
	asked := new(int)
	return &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		*asked++
		return &mcp.ElicitResult{Action: action, Content: content}, nil
	}}, asked
}

func bothVersions() []middlewaretest.Options {
	return []middlewaretest.Options{{}, {Version: middlewaretest.Version20251125, Sessions: true}}
}

func TestAsk(t *testing.T) {
	for _, o := range bothVersions() {
		for _, c := range []struct {
			action  string
			content map[string]any
			runs    bool
		}{
			{"accept", map[string]any{"approve": true}, true},
			{"accept", map[string]any{"approve": false}, false},
			{"decline", nil, false},
			{"cancel", nil, false},
		} {
			t.Run(describe(o)+"/"+c.action, func(t *testing.T) {
				s := middlewaretest.NewServer(&o)
				defer s.Close()
				opts, asked := elicit(c.action, c.content)
				r, err := connect(t, s, opts).CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"})
				if err != nil {
					t.Fatal(err)
				}
				if r.IsError == c.runs || *asked != 1 || s.Counts().Elicitations != 1 || (s.Effects("ask") == 1) != c.runs {
					t.Errorf("isError %v, asked %d, %d effects", r.IsError, *asked, s.Effects("ask"))
				}
			})
		}
	}
}

// TestAskNobody: a client that cannot ask its user.
func TestAskNobody(t *testing.T) {
	for _, o := range bothVersions() {
		s := middlewaretest.NewServer(&o)
		defer s.Close()
		r, err := connect(t, s, nil).CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"})
		if refused := err != nil || r.IsError; !refused || s.Effects("ask") != 0 || s.Counts().Elicitations != 0 {
			t.Errorf("%s: %v, %v, %d effects", describe(o), r, err, s.Effects("ask"))
		}
	}
}

const yes = `"inputResponses":{"approval":{"action":"accept","content":{"approve":true}}},`

// state finds the requestState of an answer.
func state(t *testing.T, a answer) string {
	t.Helper()
	_, rest, found := strings.Cut(string(a.body), `"requestState":"`)
	s, _, _ := strings.Cut(rest, `"`)
	if !found {
		t.Fatalf("no state in %s", a.raw)
	}
	return `"requestState":"` + s + `",`
}

// TestSecondRound: the fault strikes the round that brings the answers, once, so
// that the round can be sent again.
func TestSecondRound(t *testing.T) {
	s := middlewaretest.NewServer(nil)
	defer s.Close()
	s.Script("pay", middlewaretest.SecondRound(middlewaretest.Status(503)))
	first := send(t, s, "", callBody("pay", ""))
	if !strings.Contains(string(first.body), "input_required") {
		t.Fatalf("first round: %s", first.body)
	}
	again := state(t, first) + yes
	for i, want := range []int{503, 200} {
		if a := send(t, s, "", callBody("pay", again)); a.status != want {
			t.Errorf("%d: %s", i, a.raw)
		}
	}
	if s.Effects("pay") != 1 || s.Counts().Elicitations != 1 {
		t.Errorf("%d effects, %d questions", s.Effects("pay"), s.Counts().Elicitations)
	}
	var rounds []int
	for _, e := range s.Entries() {
		rounds = append(rounds, e.Round)
	}
	if len(rounds) != 3 || rounds[0] != 1 || rounds[1] != 2 || rounds[2] != 2 {
		t.Errorf("rounds %v", rounds)
	}
}

// TestSecondRoundAlways: under Always it strikes the round whenever it comes.
func TestSecondRoundAlways(t *testing.T) {
	s := middlewaretest.NewServer(nil)
	defer s.Close()
	s.Always("pay", middlewaretest.SecondRound(middlewaretest.Status(503)))
	again := state(t, send(t, s, "", callBody("pay", ""))) + yes
	for range 2 {
		if a := send(t, s, "", callBody("pay", again)); a.status != 503 {
			t.Errorf("%s", a.raw)
		}
	}
}

// TestThirdRound: calls that are asked at the same time keep their faults apart.
func TestThirdRound(t *testing.T) {
	s := middlewaretest.NewServer(nil)
	defer s.Close()
	third := middlewaretest.SecondRound(middlewaretest.Status(502))
	third.Round = 3
	s.Script("pay", third, middlewaretest.SecondRound(middlewaretest.Status(503)))
	a, b := send(t, s, "", callBody("pay", "")), send(t, s, "", callBody("pay", ""))
	a2, b2 := send(t, s, "", callBody("pay", state(t, a)+yes)), send(t, s, "", callBody("pay", state(t, b)+yes))
	if a2.status != 200 || b2.status != 503 {
		t.Errorf("second rounds: %d, %d", a2.status, b2.status)
	}
	if a3 := send(t, s, "", callBody("pay", state(t, a2)+yes)); a3.status != 502 {
		t.Errorf("third round: %d", a3.status)
	}
}

// TestEndless: the official client gives up by itself.
func TestEndless(t *testing.T) {
	s := middlewaretest.NewServer(nil)
	defer s.Close()
	f, _ := middlewaretest.FaultNamed("rounds-endless")
	s.Script("pay", f)
	opts, asked := elicit("accept", map[string]any{"approve": true})
	if _, err := connect(t, s, opts).CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"}); err == nil || *asked != 9 || s.Posts("pay") != 10 {
		t.Errorf("error %v, asked %d, %d posts", err, *asked, s.Posts("pay"))
	}
	if s.Effects("pay") != 0 {
		t.Errorf("%d effects", s.Effects("pay"))
	}
}

// TestShedding: after the server has shed load, the same call may come again, and
// meets what is scripted next.
func TestShedding(t *testing.T) {
	s := middlewaretest.NewServer(nil)
	defer s.Close()
	empty, _ := middlewaretest.FaultNamed("rounds-empty-requests")
	s.Script("pay", empty, empty)
	cs := connect(t, s, nil)
	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"})
	if err != nil || textOf(t, r) != "pay done" || s.Posts("pay") != 3 || s.Effects("pay") != 1 {
		t.Errorf("%v, %v, %d posts, %d effects", r, err, s.Posts("pay"), s.Effects("pay"))
	}
}
