package main

import (
	"context"
	"encoding/json"
	"time"

	"google.golang.org/genai"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

// A story is what happens to one agent: its script, what goes wrong, and what is to be
// seen on the server.
type story struct {
	title string
	tool  string // whose executions are counted
	turns []turn
	again []turn // of a second run of the same session, if any
	wrong func(*middlewaretest.Server)

	unhealed bool // the wrapped client does not renew a lost session: ADK connects again
}

var order = map[string]any{"order": "A-17", "amount": 20}

func stories() []story {
	return []story{
		{
			title: "the server pays and then cuts the connection",
			tool:  "pay",
			turns: []turn{calls("call-1", "pay", order)},
			wrong: func(s *middlewaretest.Server) { s.Script("pay", middlewaretest.Close().Executed()) },
		},
		{
			title: "the run is resumed: the model's call comes again under its id",
			tool:  "pay",
			turns: []turn{calls("call-1", "pay", order)},
			again: []turn{calls("call-1", "pay", order)},
			wrong: func(*middlewaretest.Server) {},
		},
		{
			title: "the tool refuses the arguments, and the model corrects them",
			tool:  "book",
			turns: []turn{calls("call-1", "book", map[string]any{"day": "tomorrow"}), corrected},
			wrong: func(s *middlewaretest.Server) { s.SetTool(book()) },
		},
		{
			title: "the server is busy and says for how long",
			tool:  "pay",
			turns: []turn{calls("call-1", "pay", order)},
			wrong: func(s *middlewaretest.Server) { s.Script("pay", middlewaretest.RetryAfter(429, time.Second)) },
		},
		{
			title: "the server has forgotten the session; the wrapped client renews it, and ADK notices nothing",
			tool:  "read_weather",
			turns: []turn{calls("call-1", "read_weather", nil)},
			wrong: func(s *middlewaretest.Server) { s.ScriptMethod("tools/list", restart) },
		},
		{
			title:    "the same where the policy renews no session: ADK connects again",
			tool:     "read_weather",
			turns:    []turn{calls("call-1", "read_weather", nil)},
			wrong:    func(s *middlewaretest.Server) { s.ScriptMethod("tools/list", restart) },
			unhealed: true,
		},
		{
			title: "the server pays and then forgets the session, and the model goes on",
			tool:  "pay",
			turns: []turn{calls("call-1", "pay", order), calls("call-2", "read_weather", nil)},
			wrong: func(s *middlewaretest.Server) { s.Script("pay", forgotten) },
		},
	}
}

// restart answers, and then forgets the session: the call that follows meets a 404.
var restart = middlewaretest.Fault{Name: "restart", ForgetSessions: true}

// forgotten is a 404 after the tool has run.
var forgotten = middlewaretest.Fault{Name: "forgotten", Execute: middlewaretest.Before, Status: 404, ForgetSessions: true}

// book is a tool that wants a date.
func book() middlewaretest.Tool {
	return middlewaretest.Tool{
		Name: "book", Description: "Books a table.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"day":{"type":"string"}}}`),
		Run: func(_ context.Context, c middlewaretest.Call) middlewaretest.Result {
			var day string
			c.Arg("day", &day)
			if _, err := time.Parse(time.DateOnly, day); err != nil {
				return middlewaretest.Result{Text: "day must be a date such as 2026-12-24", IsError: true}
			}
			return middlewaretest.Result{Text: "booked for " + day}
		},
	}
}

// corrected is a model that reads what was wrong.
func corrected(answer string) *genai.Content {
	if answer == "" {
		return says("I do not know what was wrong.")(answer)
	}
	return calls("call-2", "book", map[string]any{"day": "2026-12-24"})(answer)
}
