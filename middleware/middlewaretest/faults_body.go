package middlewaretest

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
)

// Body is an answer with HTTP 200, a media type ("" for none) and this template
// as its body. Its Expectation is not set.
func Body(name, contentType, body string) Fault {
	f := Fault{Name: name, Status: 200, Body: body, Execute: Before, Header: http.Header{"Content-Type": nil}}
	if contentType != "" {
		f.Header.Set("Content-Type", contentType)
	}
	return f
}

// bodyFaults are the answers of the catalogue that are not one JSON document.
func bodyFaults() []Fault {
	const json = "application/json"
	deep := `{"jsonrpc":"2.0","id":%id%,"result":{"content":[],"structuredContent":` +
		strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}}`
	malformed := func(name, body string) Fault {
		return Body("body-"+name, json, body).expect("MALFORMED_JSON", "unknown")
	}
	empty := func(status int, name string) Fault {
		f := Body("body-empty-"+name, "", "").expect("STREAM_INCOMPLETE", "unknown")
		f.Status = status
		return f
	}
	truncated := malformed("truncated", `{"jsonrpc":"2.0","id":%id%,"result":{"content":[`)
	truncated.Chunked = true
	truncated.Rests = "HTTP says that the body is complete."
	emptyJSON := empty(200, "json")
	emptyJSON.Header.Set("Content-Type", json)
	login := Body("body-login-page", "text/html; charset=utf-8", html).expect("UNEXPECTED_CONTENT", "unknown")
	all := []Fault{
		emptyJSON, empty(200, "200"), empty(202, "202"), empty(204, "204"),
		login, asNever(login),
		Body("body-text-plain", "text/plain", "%response%").expect("UNEXPECTED_CONTENT", "unknown"),
		Body("body-no-content-type", "", "%response%").expect("UNEXPECTED_CONTENT", "unknown"),
		Body("body-charset", "application/json; charset=utf-8", "%response%").expect("TOOL_SUCCESS", "answered"),
		malformed("malformed", `{unclosed`),
		truncated,
		malformed("bom", "\xef\xbb\xbf%response%"),
		malformed("invalid-utf8", "{\"jsonrpc\":\"2.0\",\"id\":%id%,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\xff\xfe\"}]}}"),
		malformed("trailing-garbage", `%response% and more`),
		malformed("two-documents", "%response%\n%response%"),
		malformed("deep", deep),
		Body("body-white-space", json, "\r\n \t%response%\r\n\r\n").expect("TOOL_SUCCESS", "answered"),
	}
	return append(all, gzipFaults()...)
}

// asNever is the variant of a fault before which the tool does not run.
func asNever(f Fault) Fault {
	f.Name, f.Execute = f.Name+"-not-executed", Never
	return f
}

func gzipFaults() []Fault {
	zipped := func(name string, encode func([]byte) []byte) Fault {
		f := Body("gzip-"+name, "application/json", "%response%")
		f.Header.Set("Content-Encoding", "gzip")
		f.encode = encode
		return f
	}
	cut := zipped("truncated", func(b []byte) []byte { b = compress(b); return b[:len(b)-12] }).expect("STREAM_INCOMPLETE", "unknown")
	cut.Rests = "The encoded body is complete for HTTP and ends in the middle of gzip's."
	lie := zipped("not-gzip", nil).expect("STREAM_INCOMPLETE", "unknown")
	lie.Rests = "The body cannot be decoded, and so has no terminal response."
	return []Fault{zipped("correct", compress).expect("TOOL_SUCCESS", "answered"), cut, lie}
}

func compress(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b) // a bytes.Buffer takes everything
	_ = w.Close()
	return out.Bytes()
}
