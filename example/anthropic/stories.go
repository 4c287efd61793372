package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

// A story is what happens to one model: its script, what goes wrong, and what is to be
// seen on the server.
type story struct {
	title string
	tool  string // whose executions are counted
	turns []turn
	again []turn // of a second run, if any
	wrong func(*middlewaretest.Server)
}

var (
	order = map[string]any{"order": "A-17", "amount": 20}
	mail  = map[string]any{"to": "ada@example.com", "text": "Reminder"}
)

func stories() []story {
	return []story{
		{
			title: "the server pays and then cuts the connection, and the model calls again",
			tool:  "pay",
			turns: []turn{calls("call-1", "pay", order), calls("call-2", "pay", order)},
			wrong: func(s *middlewaretest.Server) { s.Script("pay", middlewaretest.Close().Executed()) },
		},
		{
			title: "the model's API fails after the payment, and the host resumes the runner, which runs the tool again",
			tool:  "pay",
			turns: []turn{calls("call-1", "pay", order), fails(529)},
			wrong: func(*middlewaretest.Server) {},
		},
		{
			title: "the model makes two equal calls in one run, which are one decision",
			tool:  "pay",
			turns: []turn{calls("call-1", "pay", order), calls("call-2", "pay", order)},
			wrong: func(*middlewaretest.Server) {},
		},
		{
			title: "the model makes two equal calls in one run, to a tool for which the host says that they are two",
			tool:  "send_mail",
			turns: []turn{calls("call-1", "send_mail", mail), calls("call-2", "send_mail", mail)},
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
			title: "the server has forgotten the session; the bare client's next run has a new one, the wrapped client renews it",
			tool:  "pay",
			turns: []turn{calls("call-1", "read_weather", nil)},
			again: []turn{calls("call-2", "pay", order)},
			wrong: func(s *middlewaretest.Server) { s.ScriptMethod("tools/list", restart) },
		},
	}
}

// restart answers, and then forgets the session.
var restart = middlewaretest.Fault{Name: "restart", ForgetSessions: true}

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
func corrected(answer string) reply {
	if answer == "" {
		return says("I do not know what was wrong.")(answer)
	}
	return calls("call-2", "book", map[string]any{"day": "2026-12-24"})(answer)
}
