package middlewaretest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// now is the server's clock; it only stamps entries and HTTP dates.
func now() time.Time { return time.Now() }

// movedPath ends the path to which redirects of the catalogue lead. There no
// fault strikes.
const movedPath = "/moved"

// An exchange is one HTTP request and its answer.
type exchange struct {
	s       *Server
	w       http.ResponseWriter
	r       *http.Request
	ctx     context.Context // ends with the request or the server
	entry   *Entry
	body    []byte // of the request
	msg     message
	p       params
	session *session     // nil where there is none
	play    *play        // the scenario; nil until it is known
	stream  *eventStream // nil until one is opened
	done    *execution   // nil until the tool has run
}

// serve answers by HTTP method.
func (x *exchange) serve() {
	switch x.r.Method {
	case http.MethodPost:
		if x.read() {
			x.post()
		}
	case http.MethodGet, http.MethodDelete:
		x.s.ledger.add(x.entry)
		x.other()
	default:
		x.s.ledger.add(x.entry)
		x.notAllowed()
	}
}

// read takes in the body and the message, and books the request: only a request
// that came whole counts as received.
func (x *exchange) read() bool {
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, x.s.opts.MaxRequest))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		x.text(http.StatusRequestEntityTooLarge, "the request is too large")
		return false
	}
	if err != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	x.body = body
	err = json.Unmarshal(body, &x.msg)
	x.p = parseParams(x.msg.Params)
	x.entry.describe(&x.msg, &x.p)
	x.s.ledger.add(x.entry)
	if err == nil {
		return true
	}
	code, text := codeParse, "the body is not JSON"
	if b := bytes.TrimSpace(body); len(b) > 0 && b[0] == '[' {
		code, text = codeInvalidRequest, "batches are not supported"
	}
	x.json(http.StatusBadRequest, errorResponse(nil, code, text, nil))
	return false
}

// post answers a message, unless something is to strike before.
func (x *exchange) post() {
	if !x.authorized() || !x.joinSession() {
		return
	}
	x.enterStage()
	if !x.stageAuthorized() {
		return
	}
	if x.moved() {
		x.dispatch()
		return
	}
	if status := x.nextStatus(); status != 0 && status/100 != 2 {
		x.strike(new(Status(status)))
		return
	}
	if f := x.s.scripts.method(x.msg.Method); f != nil {
		x.strikeMethod(f)
		return
	}
	x.dispatch()
}

// other answers a GET or a DELETE.
func (x *exchange) other() {
	if !x.authorized() {
		return
	}
	if f := x.s.scripts.method(x.r.Method); f != nil && !x.moved() {
		x.strikeMethod(f)
		return
	}
	x.dispatchOther()
}

func (x *exchange) dispatchOther() {
	switch {
	case x.s.opts.stateless() || x.moved():
		x.notAllowed()
	case x.r.Method == http.MethodDelete:
		x.endSession()
	case x.r.Header.Get("Last-Event-Id") != "":
		x.resume()
	default:
		x.standalone()
	}
}

// authorized asks the owner of the server.
func (x *exchange) authorized() bool {
	return x.s.opts.Authorize == nil || x.s.opts.Authorize(x.w, x.r)
}

// moved reports whether the request came to the target of a redirect.
func (x *exchange) moved() bool { return strings.HasSuffix(x.r.URL.Path, movedPath) }

// nextStatus takes the next status of a scripted sequence of POSTs, if there is
// one.
func (x *exchange) nextStatus() int {
	if status := x.s.scripts.post(); status != 0 {
		return status
	}
	return x.stageStatus()
}

// dispatch gives the honest answer to a message.
func (x *exchange) dispatch() {
	switch {
	case x.msg.isResponse():
		x.s.asked.answer(&x.msg)
		x.status(http.StatusAccepted)
	case !x.msg.isRequest():
		x.status(http.StatusAccepted)
	case x.contradicted():
	default:
		x.request()
	}
}

func (x *exchange) request() {
	switch x.msg.Method {
	case "server/discover":
		x.discover()
	case "initialize":
		x.initialize()
	case "ping", "logging/setLevel":
		x.result(x.complete(map[string]any{}))
	case "tools/list":
		x.list()
	case "tools/call":
		x.call()
	case "subscriptions/listen":
		x.listen()
	default:
		x.unknownMethod()
	}
}

func (x *exchange) unknownMethod() {
	status := http.StatusOK
	if x.s.opts.stateless() {
		status = http.StatusNotFound // MCP 2026-07-28, Streamable HTTP
	}
	x.json(status, errorResponse(x.msg.ID, codeMethodNotFound, "method not found: "+x.msg.Method, nil))
}

// complete marks a result as complete where the version has that notion.
func (x *exchange) complete(result map[string]any) json.RawMessage {
	if x.s.opts.stateless() {
		result["resultType"] = "complete"
	}
	return mustJSON(result)
}

// result answers with a JSON-RPC result.
func (x *exchange) result(result json.RawMessage) { x.json(http.StatusOK, response(x.msg.ID, result)) }

// refuse answers with a JSON-RPC error in an HTTP error.
func (x *exchange) refuse(status, code int, text string, data json.RawMessage) {
	x.json(status, errorResponse(x.msg.ID, code, text, data))
}

func (x *exchange) json(status int, body []byte) { x.write(status, "application/json", body) }

func (x *exchange) text(status int, body string) {
	x.write(status, "text/plain; charset=utf-8", []byte(body+"\n"))
}

func (x *exchange) status(status int) { x.write(status, "", nil) }

func (x *exchange) notAllowed() {
	x.w.Header().Set("Allow", "POST")
	x.text(http.StatusMethodNotAllowed, "method not allowed")
}

// write sends a whole answer.
func (x *exchange) write(status int, contentType string, body []byte) {
	if contentType != "" {
		x.w.Header().Set("Content-Type", contentType)
	}
	x.begin(status)
	_, _ = x.w.Write(body)
}

// begin sends the status and the headers.
func (x *exchange) begin(status int) {
	x.s.ledger.update(func() { x.entry.Status = status })
	x.w.WriteHeader(status)
}

func (x *exchange) flush() { _ = http.NewResponseController(x.w).Flush() }

// hang returns when the client gives up or the server closes.
func (x *exchange) hang() { <-x.ctx.Done() }
