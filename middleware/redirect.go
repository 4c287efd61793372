package middleware

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/surecall/surecall/observe"
)

// maxRedirects is how often one request is redirected: the limit of net/http's client
// (Go 1.26).
const maxRedirects = 10

var errNoRewind = errors.New("a redirected request whose body cannot be sent again")

// askedURL is the URL that the SDK asked for. A session and a server are known by it,
// wherever the server redirects to.
func askedURL(req *http.Request) *url.URL {
	first, _ := redirects(req)
	return first.URL
}

// redirects goes back to the request that redirects made this one of, and counts them.
// net/http's client keeps the chain.
func redirects(req *http.Request) (first *http.Request, n int) {
	for req.Response != nil && req.Response.Request != nil && n < maxRedirects {
		req = req.Response.Request
		n++
	}
	return req, n
}

// redirection is where a redirect of this request may be followed to, or nil: only one
// that keeps method and body (RFC 9110, sections 15.4.8 and 15.4.9), and only within
// the same origin.
func redirection(req *http.Request, resp *http.Response) *url.URL {
	if resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect {
		return nil
	}
	to := location(req, resp)
	if to == nil || observe.URLOrigin(to) != observe.URLOrigin(req.URL) {
		return nil
	}
	return to
}

// location is the target of a redirect, or nil.
func location(req *http.Request, resp *http.Response) *url.URL {
	if resp.StatusCode/100 != 3 || resp.Header.Get("Location") == "" {
		return nil
	}
	to, err := req.URL.Parse(resp.Header.Get("Location"))
	if err != nil {
		return nil
	}
	return to
}

// follow sends a request that nobody above follows redirects for: it goes where a call
// would go.
func (t *Transport) follow(req *http.Request) (*http.Response, error) {
	for n := 0; ; n++ {
		resp, err := t.base.RoundTrip(req)
		if err != nil || resp == nil || n == maxRedirects {
			return resp, err
		}
		to := redirection(req, resp)
		if to == nil {
			return resp, nil
		}
		discard(resp)
		if req, err = redirected(req, to); err != nil {
			return nil, err
		}
	}
}

// redirected is the request as it goes to another place.
func redirected(req *http.Request, to *url.URL) (*http.Request, error) {
	next := *req
	next.URL, next.Host = to, ""
	if req.Body == nil || req.Body == http.NoBody {
		return &next, nil
	}
	if req.GetBody == nil {
		return nil, errNoRewind
	}
	body, err := req.GetBody()
	next.Body = body
	return &next, err
}
