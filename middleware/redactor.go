package middleware

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/observe"
)

// openHeaders are the request headers whose values say nothing of the caller; all
// others are looked for in what a server says, and never shown.
var openHeaders = []string{
	"Accept", "Accept-Encoding", "Content-Length", "Content-Type", "User-Agent",
	"Mcp-Method", "Mcp-Name", headerProtocolVersion,
}

// openParams are the members of a call's parameters that a server may quote.
var openParams = []string{"name", "_meta"}

// redactor knows what the request carried: arguments, the user's answers, key,
// credentials, session. It is made where a server's words may be quoted.
func (p *post) redactor() *observe.Redactor {
	if p.words == nil {
		p.words = p.newRedactor()
	}
	return p.words
}

func (p *post) newRedactor() *observe.Redactor {
	keys := p.evidence.keys
	values := []string{keys.key, idempotency.RoundKey(keys.key, p.round), p.lease.id}
	if p.request != nil {
		values = append(values, requestValues(p.request)...)
	}
	r := observe.NewRedactor(values...)
	if p.evidence.hideEmail {
		r = r.HideEmail()
	}
	body, err := p.body()
	if err != nil {
		return r
	}
	defer body.Close()
	var msg struct{ Params json.RawMessage }
	if json.NewDecoder(body).Decode(&msg) != nil {
		return r
	}
	return r.HideJSON(msg.Params, openParams...)
}

// requestValues are what an HTTP request carries beside its body.
func requestValues(req *http.Request) []string {
	var values []string
	for name, all := range req.Header {
		if !slices.Contains(openHeaders, name) {
			for _, v := range all {
				values = append(values, credentials(v)...)
			}
		}
	}
	if secret, ok := req.URL.User.Password(); ok {
		values = append(values, secret)
	}
	for _, all := range req.URL.Query() {
		values = append(values, all...)
	}
	return values
}

// credentials are a header's value and, after an authentication scheme or within
// cookies, its parts.
func credentials(value string) []string {
	all := []string{value}
	for i, c := range value {
		if c == ' ' || c == '=' {
			all = append(all, value[i+1:])
		}
	}
	return all
}

// redactor knows what the call carried: its last POST, or without a wire its
// parameters.
func (cl *call) redactor(a *attempt) *observe.Redactor {
	if a.Post != nil && a.Post.Redactor != nil {
		return a.Post.Redactor
	}
	r := observe.NewRedactor(cl.key)
	if cl.hideEmail {
		r = r.HideEmail()
	}
	params := cl.params()
	if params == nil {
		return r
	}
	raw, err := json.Marshal(params.Arguments)
	if err != nil {
		return r
	}
	return r.HideJSON(raw)
}

// cleanType is a media type fit for a record: a server can write there what it likes.
func cleanType(h http.Header) string {
	switch media := mediaType(h); media {
	case "application/json", "text/event-stream", "text/html", "text/plain", "":
		return media
	default:
		return observe.RedactType(media)
	}
}
