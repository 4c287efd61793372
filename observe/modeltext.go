package observe

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// ModelText tells a language model in one short paragraph which tool failed, what
// happened, whether it may have taken effect, and what to do next. A JSON-RPC
// message is quoted, redacted and trimmed; the text of an HTTP body, an address,
// a header or an error of the network never is.
func (e *Error) ModelText() string {
	if e.Outcome == Blocked {
		return fmt.Sprintf("%s was held back: %s.", e.subject(), strings.TrimSuffix(e.Reason, "."))
	}
	parts := []string{fmt.Sprintf("%s did not complete: %s.", e.subject(), e.happened())}
	if effect := e.effect(); effect != "" {
		parts = append(parts, effect)
	}
	return strings.Join(append(parts, e.next()), " ")
}

// subject names the call. The transport alone does not always know the tool.
func (e *Error) subject() string {
	if e.Tool == "" {
		return "The call"
	}
	return fmt.Sprintf("The call of the tool %q", e.Tool)
}

// happened says what was seen, for a reader who knows nothing of the layers.
func (e *Error) happened() string {
	switch e.Outcome {
	case JSONRPCError:
		return "the server answered with an error" + e.quoted()
	case HTTPError:
		return fmt.Sprintf("the server, or a gateway before it, answered with HTTP status %d", e.Status) + e.quoted()
	case MalformedJSON, InvalidEnvelope, InvalidToolResult:
		return "the server's answer could not be understood"
	case NetworkError:
		return "the connection to the server failed"
	case StreamIncomplete:
		return "the connection ended before the answer was complete"
	case UnexpectedContent:
		return "something other than the tool answered, perhaps a proxy or a sign-in page"
	case Redirected:
		return "the server redirected the call, which is not followed"
	case SessionLost:
		if e.Healed {
			return "the server no longer knew this session, which has been renewed"
		}
		if e.Delivery == NotSent {
			return "the session with the server has ended"
		}
		return "the server no longer knows this session"
	case ResultTooLarge:
		return "the answer was larger than the limit"
	case Timeout:
		return "no answer came in time"
	case Canceled:
		return "the call was canceled"
	case BreakerOpen:
		return "this tool has failed repeatedly and is not being called for now"
	case RateLimited:
		return "too many calls, the limit is reached"
	case InputRequired:
		return "the server kept putting it off, or asks for more input"
	}
	return "it failed"
}

func (e *Error) quoted() string {
	if e.RPC == nil || e.RPC.Message == "" {
		return ""
	}
	return fmt.Sprintf(" (code %d: %q)", e.RPC.Code, forModel(e.Redactor.Text(e.RPC.Message, maxQuoted)))
}

// effect says whether the call may have taken effect.
func (e *Error) effect() string {
	switch e.Delivery {
	case NotSent:
		return "The request was not sent, so nothing has happened."
	case Refused:
		if e.Outcome == SessionLost && !e.RepeatSafe {
			return "The server refused it, most likely without running the tool."
		}
		return "The server refused it without running the tool."
	}
	switch {
	case e.Safety == "read_only":
		return "The tool only reads, so nothing has changed."
	case e.Delivery == Answered:
		return "The tool may have taken effect before that."
	}
	return "It is not known whether it took effect: it may have."
}

// next says what to do.
func (e *Error) next() string {
	switch {
	case e.RetryAfter > 0 && (e.Delivery == NotSent || e.Delivery == Refused):
		return fmt.Sprintf("Wait %s before calling it again.", seconds(e.RetryAfter))
	case e.Outcome == JSONRPCError && e.RPC != nil && e.RPC.Code == -32602:
		return "Correct the arguments before calling it again."
	case e.Status == 401 || e.Status == 403:
		return "Ask the user to sign in or to grant access."
	case e.Healed && e.Delivery == Refused && !e.RepeatSafe:
		return "Check whether it took effect before calling it again, by reading the current state or by asking the user."
	case e.Healed && e.Delivery == Refused:
		return "It can be called again."
	case e.Delivery == NotSent, e.Delivery == Refused:
		return "Calling it again at once will probably fail the same way; tell the user if it persists."
	case e.Delivery == Answered && e.Outcome == InputRequired:
		return "It is not complete; it can be called again later."
	case e.Delivery == Answered:
		return "Do not repeat the same call unchanged; correct it or tell the user."
	case e.RepeatSafe:
		return "It is safe to call it again later."
	}
	return "Do not call it again before checking whether it took effect, by reading the current state or by asking the user."
}

// The model reads a server's message under stricter rules than an operator: it may
// act on what it reads, and what it reads may be shown to anybody.
var (
	// stackStart is where a message goes over into a trace, of Java, JavaScript,
	// Python, Go, .NET or PHP.
	stackStart = regexp.MustCompile(`(?i)(?:traceback \(most recent|\bgoroutine \d+ \[|\s+at [\w$.<>]+[ (]|\bstack ?trace\b|#0 /|\bcaused by: [\w.]+\.|\bexception in thread\b)`)
	markup     = regexp.MustCompile(`</?[a-zA-Z!][^<>]*>?`)
	address    = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://[^\s"'<>)]+` + // a URL
		`|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\[[0-9a-f:]*:[0-9a-f:.]+\](?::\d+)?` + // an IP address
		`|\b(?:[a-z0-9-]+\.)+[a-z0-9-]+:\d{2,5}\b|\blocalhost(?::\d+)?\b` + // host and port
		`|(?:/[\w.@-]+){2,}|\b[a-z]:\\\\[^\s"']+`) // a path
)

// forModel takes addresses, markup and stack texts from a redacted message.
func forModel(text string) string {
	if at := stackStart.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	text = address.ReplaceAllString(markup.ReplaceAllString(text, ""), "[address]")
	return strings.TrimSpace(RedactEmail(text))
}

func seconds(d time.Duration) string {
	n := int64((d + time.Second - 1) / time.Second)
	if n == 1 {
		return "1 second"
	}
	return fmt.Sprintf("%d seconds", n)
}
