package middlewaretest

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

const progressEvent = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%token%,\"progress\":1,\"total\":2}}\n\n"

// Stream is an event stream with this template as its text, and an ending. Its
// Expectation is not set.
func Stream(name, text string, e Ending) Fault {
	return Fault{
		Name: name, Status: 200, Body: text, Ending: e, Execute: Before,
		Header: http.Header{"Content-Type": {"text/event-stream"}},
	}
}

// streamFaults are the event streams of the catalogue.
func streamFaults() []Fault {
	all := incompleteStreams()
	all = append(all, unusableStreams()...)
	all = append(all, oddStreams()...)
	all = append(all, resumableStreams()...)
	return append(all, eventFaults()...)
}

// incompleteStreams are those without a terminal response.
func incompleteStreams() []Fault {
	cut := func(name, text string, e Ending) Fault {
		return Stream("sse-"+name, text, e).expect("STREAM_INCOMPLETE", "unknown")
	}
	half := `data: {"jsonrpc":"2.0","id":%id%,"result":{"content":[`
	silent := Stream("sse-silent", "", EndSilent).expect("TIMEOUT", "unknown")
	silent.Needs = NeedsDeadline
	stalled := Stream("sse-progress-then-silent", progressEvent, EndSilent).expect("TIMEOUT", "unknown")
	stalled.Needs = NeedsDeadline
	forever := func(name, text string) Fault {
		f := Stream("sse-"+name+"-forever", text, EndComplete).expect("TIMEOUT", "unknown")
		f.Repeat, f.Needs = 20*time.Millisecond, NeedsDeadline
		return f
	}
	empty := cut("empty", "", EndComplete)
	return []Fault{
		empty, asNever(empty),
		cut("comment-only", ": hi\n\n", EndComplete),
		cut("notification-only", progressEvent, EndComplete),
		cut("cut-event", half, EndClose),
		cut("ends-in-event", half, EndComplete),
		cut("no-blank-line", "data: %response%\n", EndComplete).rests("The event is not complete, and is not dispatched (HTML standard, server-sent events)."),
		cut("reset", ": hi\n\n", EndReset),
		cut("progress-then-cut", progressEvent, EndClose),
		cut("progress-then-reset", progressEvent, EndReset),
		cut("other-event-type", "event: ping\ndata: %response%\n\n", EndComplete).rests("An event of another type is no message."),
		silent, asNever(silent), stalled,
		forever("progress", progressEvent), forever("comments", ": hi\n\n"),
	}
}

// unusableStreams are those whose terminal response cannot be used.
func unusableStreams() []Fault {
	large := Stream("sse-huge-event", `data: {"jsonrpc":"2.0","id":%id%,"result":{"content":[{"type":"text","text":"%fill%"}]}}`+"\n\n", EndComplete).
		expect("RESULT_TOO_LARGE", "unknown")
	large.Size, large.Needs = CatalogueResultLimit+1, NeedsLimit
	return []Fault{
		Stream("sse-malformed", "data: {unclosed\n\n", EndComplete).expect("MALFORMED_JSON", "unknown"),
		Stream("sse-wrong-id", "data: {\"jsonrpc\":\"2.0\",\"id\":%nextid%,\"result\":%result%}\n\n", EndComplete).expect("INVALID_ENVELOPE", "unknown"),
		Stream("sse-wrong-id-stays-open", "data: {\"jsonrpc\":\"2.0\",\"id\":%nextid%,\"result\":%result%}\n\n", EndSilent).expect("INVALID_ENVELOPE", "unknown"),
		Stream("sse-content-text", "data: {\"jsonrpc\":\"2.0\",\"id\":%id%,\"result\":{\"content\":\"done\"}}\n\n", EndComplete).expect("INVALID_TOOL_RESULT", "unknown"),
		Stream("sse-error", "data: {\"jsonrpc\":\"2.0\",\"id\":%id%,\"error\":{\"code\":-32603,\"message\":\"m\"}}\n\n", EndComplete).expect("JSONRPC_ERROR", "answered"),
		Stream("sse-tool-error", "data: {\"jsonrpc\":\"2.0\",\"id\":%id%,\"result\":{\"content\":[],\"isError\":true}}\n\n", EndComplete).expect("TOOL_ERROR", "answered"),
		large,
	}
}

// oddStreams are good answers in unusual forms, all of them within the HTML
// standard's section on server-sent events.
func oddStreams() []Fault {
	odd := func(name, text string) Fault {
		return Stream("sse-"+name, text, EndComplete).expect("TOOL_SUCCESS", "answered")
	}
	const response = "data: %response%\n\n"
	lines := "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":%id%,\ndata: \"result\":%result%}\n\n"
	open := odd("stays-open", response)
	open.Ending = EndSilent
	pieces := odd("pieces", strings.ReplaceAll(progressEvent+response, "\n", "\r\n"))
	pieces.Pace = time.Millisecond
	request := odd("server-request", "data: {\"jsonrpc\":\"2.0\",\"id\":\"srv-1\",\"method\":\"ping\"}\n\n"+response).
		rests("2026-07-28 has no requests of the server; the client may answer it all the same.")
	second := odd("second-response", response+"data: {\"jsonrpc\":\"2.0\",\"id\":%id%,\"error\":{\"code\":-32603,\"message\":\"m\"}}\n\n")
	return []Fault{
		odd("plain", response),
		odd("no-space", "data:%response%\n\n"),
		odd("cr", strings.ReplaceAll(": hi\n\n"+response, "\n", "\r")),
		odd("crlf", strings.ReplaceAll(": hi\n\n"+response, "\n", "\r\n")),
		odd("bom", "\xef\xbb\xbf"+response),
		odd("multi-line", lines),
		odd("other-events", "event: ping\ndata: {}\n\nevent: note\ndata: text\n\nevent: message\n"+response),
		odd("bare-fields", "data\n\nnonsense\n"+response),
		odd("unknown-fields", "flavour: sour\nretry: 10\n"+response),
		odd("comments", ": a\n: b\n\n"+response+": c\n\n"),
		odd("progress", progressEvent+progressEvent+response),
		odd("charset", response).withType("text/event-stream; charset=utf-8"),
		pieces,
		request,
		second,
		open,
	}
}

// resumableStreams are cut after an event with an id. 2026-07-28 has no
// resumption: there the cut is the end.
func resumableStreams() []Fault {
	resumable := func(name string, r Resumption, legacy Expectation) Fault {
		f := Stream("sse-resume-"+name, "id: %stream%_0\nretry: 20\ndata:\n\n", EndClose).expect("STREAM_INCOMPLETE", "unknown")
		f.Resume, f.Legacy = r, &legacy
		return f
	}
	incomplete := Expectation{"STREAM_INCOMPLETE", "unknown"}
	delivers := resumable("delivers", ResumeDelivers, Expectation{"TOOL_SUCCESS", "answered"})
	polite := resumable("delivers-after-end", ResumeDelivers, Expectation{"TOOL_SUCCESS", "answered"})
	polite.Ending = EndComplete
	silent := resumable("silent", ResumeSilent, Expectation{"TIMEOUT", "unknown"})
	silent.Needs = NeedsDeadline
	return []Fault{
		delivers, polite,
		resumable("405", ResumeNotAllowed, incomplete),
		resumable("404", ResumeNotFound, incomplete).rests("The stream is gone; whether the session is too, is another question."),
		resumable("nothing", ResumeNothing, incomplete),
		silent,
	}
}

// eventFaults are the faults of responses and results, as events.
func eventFaults() []Fault {
	var all []Fault
	for _, f := range slices.Concat(envelopeFaults(), resultFaults()) {
		switch {
		case f.Body == "" || f.Needs&NeedsLimit != 0:
			continue
		case f.Name == "envelope-notification" || f.Name == "envelope-request":
			f = f.expect("STREAM_INCOMPLETE", "unknown").rests("A message that is no response may come before one, which here never comes.")
		}
		all = append(all, f.AsEvent())
	}
	return all
}

func (f Fault) withType(contentType string) Fault {
	f.Header = http.Header{"Content-Type": {contentType}}
	return f
}

func (f Fault) rests(why string) Fault {
	f.Rests = why
	return f
}
