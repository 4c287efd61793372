package middleware

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// notify sends a notification, or a response to a request of the server's. Nobody
// waits for its answer, but the SDK ends the session on anything outside 2xx
// (go-sdk v1.8.0): a server that dislikes the notifications/cancelled after a
// timeout would take every call in flight with it. So the refusal is accepted on
// the server's behalf, but for 401 and 403, which an authorization handler must
// see: those keep status and headers.
func (t *Transport) notify(req *http.Request) (*http.Response, error) {
	s := t.session(req)
	l := s.current()
	resp, err := t.follow(s.under(req, l))
	if err != nil || resp == nil {
		return resp, err
	}
	s.show(resp, l)
	correctSession(req, resp, false)
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	drain(resp.Body)
	if isAuth(resp.StatusCode) {
		setBody(resp, rejection(`"surecall"`, fmt.Sprintf("HTTP status %d", resp.StatusCode)))
		return resp, nil
	}
	resp.StatusCode, resp.Status = http.StatusAccepted, "202 Accepted"
	setBody(resp, nil)
	return resp, nil
}

// isAuth reports whether a status asks for authorization.
func isAuth(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// setBody replaces a response's body by JSON bytes; nil is none.
func setBody(resp *http.Response, body []byte) {
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength = int64(len(body))
	resp.TransferEncoding = nil
	if body != nil && resp.Header.Get("Content-Type") != "application/json" {
		resp.Header.Set("Content-Type", "application/json")
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
}
