package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// TestHeadersStayWithTheirOrigin: a redirect must not carry a credential elsewhere.
func TestHeadersStayWithTheirOrigin(t *testing.T) {
	seen := map[string]string{}
	var other *httptest.Server
	note := func(w http.ResponseWriter, r *http.Request) {
		seen[r.URL.Path] = r.Header.Get("Authorization") + " " + r.Host
		if r.URL.Path == "/away" {
			http.Redirect(w, r, other.URL+"/there", http.StatusTemporaryRedirect)
		}
	}
	other = httptest.NewServer(http.HandlerFunc(note))
	defer other.Close()
	home := httptest.NewServer(http.HandlerFunc(note))
	defer home.Close()

	endpoint, _ := url.Parse(home.URL + "/mcp")
	base := &http.Transport{}
	client := &http.Client{Transport: newWithHeaders(base, endpoint, http.Header{"Authorization": {"secret"}, "Host": {"virtual"}})}
	defer client.CloseIdleConnections()
	req, _ := http.NewRequest("POST", home.URL+"/away", nil)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := seen["/away"]; got != "secret virtual" {
		t.Errorf("at home: %q", got)
	}
	if got, ok := seen["/there"]; !ok || got != " "+other.Listener.Addr().String() {
		t.Errorf("elsewhere: %q", got)
	}
	if len(req.Header) != 0 || req.Host == "virtual" {
		t.Error("the request was changed")
	}
	if newWithHeaders(base, endpoint, nil) != base {
		t.Error("a transport without headers to add is wrapped")
	}
}
