package middlewaretest

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

const html = "<!doctype html><title>Sign in</title><form action=/login><input name=user></form>"

// Status is an HTTP error with a short text. Its Expectation is not set.
func Status(code int) Fault {
	return Fault{
		Name: "status-" + strconv.Itoa(code), Status: code,
		Header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}},
		Body:   http.StatusText(code) + "\n",
	}
}

// RetryAfter is an HTTP error with Retry-After in seconds; a fraction is rounded
// up.
func RetryAfter(code int, d time.Duration) Fault {
	f := Status(code)
	f.Name += "-retry-after"
	f.RetryAfter = d
	return f
}

// RetryAfterDate is an HTTP error with Retry-After as an HTTP date.
func RetryAfterDate(code int, d time.Duration) Fault {
	f := RetryAfter(code, d)
	f.Name += "-date"
	f.RetryDate = true
	return f
}

// StatusError is an HTTP error whose body is a JSON-RPC error with the request's
// id.
func StatusError(status, code int, message string) Fault {
	f := JSONRPCError(code, message)
	f.Name = fmt.Sprintf("status-%d-%s", status, f.Name)
	f.Status = status
	return f
}

// Redirect is a redirect to another path of the same origin, or of another
// origin. At its target, where a client that follows it arrives, the call is
// answered honestly.
func Redirect(code int, elsewhere bool) Fault {
	f := Status(code)
	f.Name = fmt.Sprintf("redirect-%d-same-origin", code)
	target := "%here%" + movedPath
	if elsewhere {
		f.Name = fmt.Sprintf("redirect-%d-other-origin", code)
		target = "%elsewhere%" + movedPath
	}
	f.Header.Set("Location", target)
	return f
}

// statusFaults are the HTTP errors of the catalogue.
func statusFaults() []Fault {
	var all []Fault
	// RFC 9110 and others say of these that the request was not acted upon.
	for _, code := range []int{400, 401, 403, 405, 406, 413, 415, 421, 425, 428, 431, 451} {
		all = append(all, Status(code).expect("HTTP_ERROR", "refused"))
	}
	for _, code := range []int{408, 409, 410, 422, 423, 424, 499, 500, 501, 502, 503, 504, 520, 524} {
		f := Status(code).expect("HTTP_ERROR", "unknown")
		all = append(all, f, f.Executed())
	}
	all = append(all, Status(504).expect("HTTP_ERROR", "unknown").ExecutedLater())
	all = append(all, notFoundFaults()...)
	all = append(all, retryFaults()...)
	all = append(all, redirectFaults()...)
	return append(all, statusBodyFaults()...)
}

// notFoundFaults are the shapes of 404 in a session that is alive.
func notFoundFaults() []Fault {
	alive := &Expectation{"HTTP_ERROR", "unknown"}
	text := Status(404).expect("HTTP_ERROR", "refused")
	text.InSession = alive
	text.Rests = "A 404 to a request with a session id would mean a lost session, but a ping under the same id is answered: it proves nothing."
	noID := StatusError(404, codeInvalidRequest, "not found").expect("HTTP_ERROR", "refused")
	noID.Name, noID.Body = "status-404-jsonrpc-id-null", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"not found"}}`
	noID.InSession, noID.Rests = alive, text.Rests
	echo := StatusError(404, codeMethodNotFound, "method not found").expect("HTTP_ERROR", "refused")
	echo.Rests = "The error answers this request, so that the session is alive."
	return []Fault{text, noID, echo}
}

func retryFaults() []Fault {
	const second = time.Second
	return []Fault{
		Status(429).expect("HTTP_ERROR", "refused"),
		RetryAfter(429, second).expect("HTTP_ERROR", "refused"),
		RetryAfterDate(429, 2*second).expect("HTTP_ERROR", "refused"),
		RetryAfter(503, second).expect("HTTP_ERROR", "unknown"),
		RetryAfter(503, second).expect("HTTP_ERROR", "unknown").Executed(),
		RetryAfterDate(503, 2*second).expect("HTTP_ERROR", "unknown"),
		RetryAfter(425, second).expect("HTTP_ERROR", "refused"),
	}
}

func redirectFaults() []Fault {
	var all []Fault
	for _, elsewhere := range []bool{false, true} {
		for _, code := range []int{301, 302, 303} {
			f := Redirect(code, elsewhere).expect("REDIRECTED", "unknown")
			all = append(all, f, f.Executed())
		}
		for _, code := range []int{307, 308} {
			f := Redirect(code, elsewhere).expect("TOOL_SUCCESS", "answered")
			f.Rests = "Followed within the origin, with its body; the tool runs at the target."
			if elsewhere {
				f = f.expect("REDIRECTED", "refused")
				f.Rests = "Not followed to another origin."
			}
			all = append(all, f)
		}
	}
	return all
}

// statusBodyFaults are HTTP errors with bodies that may mislead.
func statusBodyFaults() []Fault {
	success := Fault{Name: "status-500-success-body", Status: 500, Body: "%response%"}.expect("HTTP_ERROR", "unknown")
	success.Rests = "The status comes before the body."
	internal := StatusError(500, codeInternal, "internal error").expect("HTTP_ERROR", "unknown")
	refused := StatusError(500, codeMethodNotFound, "method not found").expect("HTTP_ERROR", "unknown")
	refused.Rests = "A code proves a refusal only with a status below 500."
	never := Fault{Name: "status-503-body-never-comes", Status: 503, Missing: 100, Ending: EndSilent, Needs: NeedsDeadline}.expect("HTTP_ERROR", "unknown")
	never.Rests = "The status is known although the body never comes."
	page := Status(502).expect("HTTP_ERROR", "unknown")
	page.Name, page.Body = "status-502-html", html
	page.Header.Set("Content-Type", "text/html; charset=utf-8")
	return []Fault{
		success, success.Executed(), internal, internal.Executed(), refused, refused.Executed(), never, never.Executed(), page,
		StatusError(400, codeInvalidParams, "invalid params").expect("HTTP_ERROR", "refused"),
		StatusError(400, codeHeaderMismatch, "header mismatch").expect("HTTP_ERROR", "refused"),
		Fault{Name: "early-hints", EarlyHints: true, Execute: Before}.expect("TOOL_SUCCESS", "answered"),
	}
}

// expect returns a copy with another expectation.
func (f Fault) expect(outcome, delivery string) Fault {
	f.Expectation = Expectation{outcome, delivery}
	return f
}
