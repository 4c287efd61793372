package middlewaretest

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// A Plant is a secret in one place where a server, or the network, can put one. A
// client that keeps records, logs or traces must not let it through: not in a record,
// a log line, a span, a label, the text of an error, or what a model reads in the
// place of an answer. A result of the tool itself is another matter: it belongs to the
// caller.
type Plant struct {
	// Name says where the secret stands.
	Name string
	// Secret must not be found, nor any part of it of eight bytes and more.
	Secret string
	// Fault is how the server answers the call.
	Fault Fault
	// Arguments are those of the call; nil is none.
	Arguments map[string]any
	// Header is what the client's HTTP requests carry, for example added by a
	// RoundTripper.
	Header http.Header
	// Query and Password belong to the endpoint's URL.
	Query    url.Values
	Password string
	// Key is the idempotency key that the host gives the call.
	Key string
}

// Shows reports whether a text holds the plant's secret, or a part of it, in whatever
// case.
func (p *Plant) Shows(text string) bool {
	const part = 8
	text, secret := strings.ToLower(text), strings.ToLower(p.Secret)
	for at := 0; at+part <= len(secret); at++ {
		if strings.Contains(text, secret[at:at+part]) {
			return true
		}
	}
	return false
}

// Plants returns the corpus: credentials of known shapes in everything that a server
// can write, and values of no shape at all that the call itself carried and the
// server echoes.
func Plants() []Plant {
	var all []Plant
	for i, shape := range shapes() {
		for j, place := range places() {
			// Every shape in the message, and each place with a few of the shapes.
			if j == 0 || j%5 == i%5 {
				all = append(all, Plant{Name: place.name + " " + shape.name, Secret: shape.secret, Fault: place.fault(shape.text)})
			}
		}
	}
	return append(all, echoes()...)
}

type shape struct{ name, secret, text string }

// shapes are credentials as they are known, with the words around them. They are
// made up, and written in parts so that no scanner takes them for lost ones.
func shapes() []shape {
	const body = "Zq7Rk2Vw9Xt4Lm8Np3Bc"
	of := func(name, prefix, secret string) shape { return shape{name, secret, prefix + secret} }
	return []shape{
		of("bearer", "denied for Bearer ", body),
		of("jwt", "token ", "ey"+"JhbGciOiJIUzI1NiJ9.ey"+"JzdWIiOiJacTdSazIifQ."+body),
		of("aws key", "credential ", "AK"+"IAZQ7RK2VW9XT4LM8N"),
		of("stripe key", "no such key ", "sk_"+"live_"+body),
		of("openai key", "incorrect key ", "sk-"+"proj-"+body),
		of("github token", "bad credentials ", "gh"+"p_"+body),
		of("slack token", "invalid ", "xo"+"xb-"+body),
		of("password", "login failed: password=", body),
		of("basic", "Authorization: Basic ", "dXNlcjpacTdSazJWdzlYdDRMbThOcDNCYw"),
		{"connection string", body, "cannot open postgres://app:" + body + "@db.test/orders"},
		of("signed url", "expired: https://bucket.test/file?X-Amz-Signature=", body),
	}
}

type place struct {
	name  string
	fault func(text string) Fault
}

// places are where a server can put a text.
func places() []place {
	respond := func(name string, body func(quoted string) string) place {
		return place{name, func(text string) Fault { return ResultBody("plant", "").withBody(body(strconv.Quote(text))) }}
	}
	status := func(name string, code int, contentType string, body func(string) string) place {
		return place{name, func(text string) Fault {
			f := Status(code).withBody(body(text))
			f.Header = http.Header{"Content-Type": {contentType}}
			return f
		}}
	}
	header := func(name string, code int, field, prefix string) place {
		return place{name, func(text string) Fault {
			f := Status(code)
			f.Header = http.Header{field: {prefix + text}}
			return f
		}}
	}
	stream := func(name, before, after string, e Ending) place {
		return place{name, func(text string) Fault { return Stream("plant", before+text+after, e) }}
	}
	plain := func(s string) string { return s }
	page := func(s string) string {
		return "<html><title>Sign in</title><!-- " + s + " --><body><pre>" + s + "</pre></body></html>"
	}
	const failed = `{"jsonrpc":"2.0","id":%id%,"error":{"code":-32603,"message":`
	return []place{
		respond("message", func(q string) string { return failed + q + `}}` }),
		respond("data", func(q string) string { return failed + `"m","data":` + q + `}}` }),
		respond("nested data", func(q string) string { return failed + `"m","data":{"detail":[{"why":` + q + `}]}}}` }),
		respond("result", func(q string) string {
			return `{"jsonrpc":"2.0","id":%id%,"result":{"content":[{"type":"text","text":` + q + `}],"_meta":{"x":` + q + `}}}`
		}),
		respond("isError", func(q string) string {
			return `{"jsonrpc":"2.0","id":%id%,"result":{"content":[{"type":"text","text":` + q + `}],"isError":true}}`
		}),
		respond("foreign id", func(q string) string { return `{"jsonrpc":"2.0","id":` + q + `,"result":{"content":[]}}` }),
		respond("result type", func(q string) string {
			return `{"jsonrpc":"2.0","id":%id%,"result":{"resultType":` + q + `,"content":[]}}`
		}),
		respond("unknown member", func(q string) string { return `{"jsonrpc":"2.0","id":%id%,` + q + `:1,"result":{"content":[]}}` }),
		respond("broken JSON", func(q string) string { return `{"jsonrpc":"2.0","id":%id%,"error":` + q }),
		respond("no envelope", func(q string) string { return `{"fault":` + q + `}` }),
		status("plain text 503", 503, "text/plain", plain),
		status("plain text 200", 200, "text/plain", plain),
		status("page 502", 502, "text/html", page),
		status("page 200", 200, "text/html; charset=utf-8", page),
		status("problem 400", 400, "application/problem+json", func(s string) string { return `{"title":"no","detail":` + strconv.Quote(s) + `}` }),
		status("message in 400", 400, "application/json", func(s string) string {
			return `{"jsonrpc":"2.0","id":%id%,"error":{"code":-32600,"message":` + strconv.Quote(s) + `,"data":` + strconv.Quote(s) + `}}`
		}),
		status("message in 404", 404, "application/json", func(s string) string {
			return `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":` + strconv.Quote(s) + `}}`
		}),
		header("challenge", 401, "Www-Authenticate", `Bearer realm="x", error_description=`),
		header("forbidden", 403, "Www-Authenticate", `Bearer scope=`),
		header("cookie", 503, "Set-Cookie", "session="),
		header("debug header", 500, "X-Debug", ""),
		header("retry-after", 503, "Retry-After", ""),
		header("redirect query", 302, "Location", "https://elsewhere.test/?next="),
		header("redirect user", 302, "Location", "https://elsewhere.test:443/ "),
		{"redirect away", func(text string) Fault {
			f := Status(307)
			f.Header = http.Header{"Location": {"https://user:" + url.PathEscape(text) + "@elsewhere.test/" + url.PathEscape(text) + "?t=" + url.QueryEscape(text)}}
			return f
		}},
		{"media type", func(text string) Fault {
			f := Status(200).withBody("x")
			f.Header = http.Header{"Content-Type": {"text/" + lastWord(text) + `; note="` + text + `"`}}
			return f
		}},
		{"session id", func(text string) Fault {
			f := Status(500)
			f.Header = http.Header{"Mcp-Session-Id": {lastWord(text)}}
			return f
		}},
		stream("comment", ": ", "\n\n", EndClose),
		stream("event id", "id: ", "\ndata:\n\n", EndClose),
		stream("event name", "event: ", "\ndata: {}\n\n", EndComplete),
		stream("broken event", "data: {", "\n\n", EndComplete),
		stream("event of no form", "", "\n\n", EndComplete),
		{"notification", func(text string) Fault {
			return Stream("plant", `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":`+strconv.Quote(text)+"}}\n\n", EndReset)
		}},
		{"message in an event", func(text string) Fault {
			return Stream("plant", "data: "+failed+strconv.Quote(text)+"}}\n\n", EndComplete)
		}},
		{"body cut short", func(text string) Fault {
			f := Status(200).withBody(`{"jsonrpc":"2.0","id":%id%,"error":{"message":` + strconv.Quote(text))
			f.Missing, f.Ending = 100, EndClose
			return f
		}},
	}
}

func lastWord(text string) string {
	text = strings.NewReplacer("/", "-", "@", "-", ":", "-", "?", "-", "=", "-").Replace(text)
	return text[strings.LastIndex(text, " ")+1:]
}

// echoes are values that the call carried, which look like nothing, in what the
// server says of them.
func echoes() []Plant {
	const secret = "grandmother's blue umbrella"
	var all []Plant
	for _, place := range places() {
		switch place.name {
		case "message", "data", "nested data", "plain text 503", "page 200", "message in 400", "message in an event", "broken event", "foreign id":
		default:
			continue
		}
		fault := func(text string) Fault { return place.fault("unknown value " + text + " given") }
		add := func(name, secret, echo string, p Plant) {
			p.Name, p.Secret, p.Fault = place.name+" echoes "+name, secret, fault(echo)
			all = append(all, p)
		}
		add("an argument", secret, secret, Plant{Arguments: map[string]any{"note": secret}})
		add("a nested argument", secret, secret, Plant{Arguments: map[string]any{"a": []any{map[string]any{"b": secret}}}})
		add("an argument in part", secret, secret[:16]+"...", Plant{Arguments: map[string]any{"note": secret}})
		add("an encoded argument", url.QueryEscape(secret), url.QueryEscape(secret), Plant{Arguments: map[string]any{"note": secret}})
		add("a number", "8812345678", "8812345678", Plant{Arguments: map[string]any{"account": 8812345678}})
		add("a header", "blue-umbrella-7", "blue-umbrella-7", Plant{Header: http.Header{"X-Tenant": {"blue-umbrella-7"}}})
		add("a credential", "blue.umbrella.8", "blue.umbrella.8", Plant{Header: http.Header{"Authorization": {"Custom blue.umbrella.8"}}})
		add("a cookie", "blue~umbrella~9", "blue~umbrella~9", Plant{Header: http.Header{"Cookie": {"a=blue~umbrella~9"}}})
		add("a query", "umbrellas-and-hats", "umbrellas-and-hats", Plant{Query: url.Values{"tenant": {"umbrellas-and-hats"}}})
		add("a password", "rain-coat-and-hat", "rain-coat-and-hat", Plant{Password: "rain-coat-and-hat"})
		add("a key", "order-umbrella-0007", "order-umbrella-0007", Plant{Key: "order-umbrella-0007"})
	}
	return all
}

func (f Fault) withBody(body string) Fault {
	f.Body = body
	return f
}
