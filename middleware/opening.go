package middleware

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"sync"

	"github.com/surecall/surecall/observe"
)

// maxOpening bounds each side of a handshake that is kept; a session whose handshake
// is larger is not renewed.
const maxOpening = 1 << 20

// An opening is the handshake that opened a session: what the client sent, without
// headers and so without credentials, and what the server said of itself.
type opening struct {
	id      string // of the request, as JSON
	request []byte
	answer  *overheard
}

// introduction returns what the server said of itself, if that is known.
func (o *opening) introduction() (introduction, bool) { return o.answer.introduction() }

// readOpening reads the request of a handshake, or reports false.
func readOpening(req *http.Request, e envelope) (opening, bool) {
	body, err := req.GetBody()
	if err != nil {
		return opening{}, false
	}
	defer body.Close()
	raw, err := io.ReadAll(io.LimitReader(body, maxOpening+1))
	return opening{id: e.id, request: raw}, err == nil && len(raw) <= maxOpening
}

// An introduction is what identifies a server in its answer to initialize. The version
// of its software is not a part of that: a restart is how a new one comes.
type introduction struct {
	protocol     string
	name         string
	capabilities any
}

// readIntroduction reads the result of initialize.
func readIntroduction(result []byte) (introduction, bool) {
	var r struct {
		ProtocolVersion string `json:"protocolVersion"`
		Capabilities    any    `json:"capabilities"`
		ServerInfo      struct {
			Name string `json:"name"`
		} `json:"serverInfo"`
	}
	err := json.Unmarshal(result, &r)
	return introduction{r.ProtocolVersion, r.ServerInfo.Name, r.Capabilities}, err == nil && r.ProtocolVersion != ""
}

// change says what differs in another introduction, or "".
func (i introduction) change(other introduction) string {
	switch {
	case i.protocol != other.protocol:
		return "the protocol version"
	case i.name != other.name:
		return "the server's name"
	case !reflect.DeepEqual(i.capabilities, other.capabilities):
		return "what the server can do"
	}
	return ""
}

// overheard is the body of an answer to initialize that the SDK reads; what passes is
// kept until it is understood.
type overheard struct {
	io.ReadCloser
	head http.Response // status and headers alone
	id   string

	mu    sync.Mutex
	heard []byte
	known introduction
	ok    bool
}

func overhear(resp *http.Response, id string) *overheard {
	return &overheard{ReadCloser: resp.Body, head: http.Response{StatusCode: resp.StatusCode, Header: resp.Header.Clone()}, id: id}
}

func (o *overheard) Read(b []byte) (int, error) {
	n, err := o.ReadCloser.Read(b)
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.heard) <= maxOpening {
		o.heard = append(o.heard, b[:n]...)
	}
	return n, err
}

func (o *overheard) Close() error {
	o.introduction()
	o.mu.Lock()
	o.heard = nil
	o.mu.Unlock()
	return o.ReadCloser.Close()
}

// introduction returns what the server said of itself, as far as it was heard.
func (o *overheard) introduction() (introduction, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ok && len(o.heard) > 0 && len(o.heard) <= maxOpening {
		resp := o.head
		resp.Body = io.NopCloser(bytes.NewReader(o.heard))
		_, v := judgeAnswer(&resp, o.id, "initialize")
		o.known, o.ok = readIntroduction(v.Result)
	}
	return o.known, o.ok
}

// judgeAnswer reads an answer to a request of ours to its end, or to the response in a
// stream, and closes it.
func judgeAnswer(resp *http.Response, id, method string) ([]byte, observe.Verdict) {
	defer resp.Body.Close()
	q := observe.Answer{Status: resp.StatusCode, ID: id, Method: method, HadSession: method != "initialize"}
	if resp.StatusCode/100 == 2 && mediaType(resp.Header) == "text/event-stream" && !coded(resp.Header) {
		events := observe.NewEventReader(resp.Body, maxOpening)
		for {
			e, err := events.Next()
			if err != nil {
				return nil, observe.Verdict{Outcome: observe.StreamIncomplete}
			}
			if kind, v := observe.ClassifyMessage(e.Data, q, nil); len(e.Data) > 0 && kind == observe.KindResponse {
				return e.Data, v
			}
		}
	}
	var body []byte
	if resp.StatusCode/100 == 2 {
		body, _ = io.ReadAll(io.LimitReader(resp.Body, maxOpening+1))
	} else {
		body = readErrorBody(resp)
	}
	q.Header, q.Body = contentHeader(resp.Header), body
	return body, observe.Classify(q, nil)
}
