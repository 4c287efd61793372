package middlewaretest

// SecondRound makes a fault strike the second round of a call, after the user was
// asked in the first.
func SecondRound(f Fault) Fault {
	f.Name, f.Round = "round-2-"+f.Name, 2
	f.Needs |= NeedsStateless
	return f
}

// roundFaults are those of multi-round-trip calls and of sessions.
func roundFaults() []Fault {
	asks := func(name, result string) Fault {
		f := ResultBody("rounds-"+name, result).expect("INPUT_REQUIRED", "answered")
		f.Execute, f.Needs = Never, NeedsStateless
		return f
	}
	const state = `"resultType":"input_required","requestState":"%state%"`
	endless := asks("endless", "%question%").expect("INVALID_TOOL_RESULT", "unknown").rests("A client ends rounds without end.")
	endless.EveryRound = true
	shedding := asks("no-requests-ever", `{`+state+`}`)
	shedding.EveryRound = true
	legacy := asks("on-2025-11-25", "%question%").expect("INVALID_TOOL_RESULT", "unknown").rests("The version has no rounds.")
	legacy.Needs = NeedsLegacy
	second := func(f Fault, outcome string) Fault { return SecondRound(f.expect(outcome, "unknown")) }
	return []Fault{
		asks("question", "%question%"),
		asks("no-requests", `{`+state+`}`).rests("Load shedding: the client may try again, with the state, after a wait."),
		asks("empty-requests", `{`+state+`,"inputRequests":{}}`).rests("Load shedding: the client may try again, with the state, after a wait."),
		asks("unknown-request", `{`+state+`,"inputRequests":{"q":{"method":"hologram/create","params":{}}}}`).expect("INVALID_TOOL_RESULT", "unknown"),
		endless, shedding, legacy,
		second(Status(503), "HTTP_ERROR"),
		second(Status(503), "HTTP_ERROR").Executed(),
		second(Reset(), "NETWORK_ERROR"),
		second(Reset(), "NETWORK_ERROR").Executed(),
		second(Stream("sse-empty", "", EndComplete), "STREAM_INCOMPLETE"),
	}
}

// sessionFaults are those in which the server loses the session.
func sessionFaults() []Fault {
	forgotten := func(name string, f Fault) Fault {
		f = f.expect("SESSION_LOST", "refused")
		f.Name, f.ForgetSessions, f.Needs = "session-forgotten"+name, true, NeedsSession
		return f
	}
	noID := StatusError(404, codeInvalidRequest, "")
	noID.Body = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"session not found"}}`
	text := forgotten("", Status(404))
	return []Fault{
		text, text.Executed(),
		forgotten("-jsonrpc-id-null", noID),
		forgotten("-jsonrpc-32600", StatusError(404, codeInvalidRequest, "session not found")),
	}
}
