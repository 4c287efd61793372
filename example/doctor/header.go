package main

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/surecall/surecall/observe"
)

// parseHeader reads "Name: value" (RFC 9110, sections 5.1 and 5.5). No error shows
// the value: it may be a credential.
func parseHeader(s string) (name, value string, err error) {
	name, value, ok := strings.Cut(s, ":")
	value = strings.Trim(value, " \t")
	switch {
	case !ok:
		return "", "", errors.New("no colon: 'Name: value' is needed")
	case name == "" || strings.ContainsFunc(name, notToken):
		return "", "", errors.New("what stands before the colon is not the name of a header")
	case strings.ContainsFunc(value, notFieldValue):
		return "", "", errors.New("the value holds a control character")
	}
	return name, value, nil
}

func notToken(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}

func notFieldValue(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// withHeaders adds headers to the requests of one origin: a redirect must not carry
// a credential elsewhere. It stands above the guarded transport, so that this
// keeps its own base, which can prove more calls unsent.
type withHeaders struct {
	base   http.RoundTripper
	origin string
	header http.Header
}

func newWithHeaders(base http.RoundTripper, endpoint *url.URL, header http.Header) http.RoundTripper {
	if len(header) == 0 {
		return base
	}
	return &withHeaders{base, observe.URLOrigin(endpoint), header}
}

func (t *withHeaders) RoundTrip(req *http.Request) (*http.Response, error) {
	if observe.URLOrigin(req.URL) != t.origin {
		return t.base.RoundTrip(req)
	}
	req = req.Clone(req.Context())
	for name, values := range t.header {
		req.Header[name] = values
	}
	// net/http takes the host from its own field.
	if host := t.header.Get("Host"); host != "" {
		req.Host = host
	}
	return t.base.RoundTrip(req)
}

// CloseIdleConnections passes the request of http.Client on.
func (t *withHeaders) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
