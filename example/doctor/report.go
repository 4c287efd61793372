package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/observe"
)

// margin is the column in which the texts of a report begin.
const margin = 13

// maxResult bounds what is shown of a block of a result, in bytes.
const maxResult = 600

// tell is the report of a call in words: what was seen layer by layer, what it
// means, what was decided and what to do.
func tell(f *finding) string {
	r := f.record
	s := &sheet{}
	s.WriteString("\n" + paragraph(plain(r.Tool, maxName)+"  ", layers(r), margin))
	s.line("outcome", fmt.Sprintf("%s (%s), after %s", r.Outcome, r.Layer, duration(r.DurationMs)))
	s.line("seen", seen(f))
	s.line("delivery", delivery(r))
	s.attempts(r)
	s.line("safety", safety(r))
	s.line("server", rpcMessage(r))
	s.line("body", plain(r.Excerpt, maxWords))
	s.line("noted", noted(r))
	s.line("decided", r.Decision.Action+": "+plain(r.Decision.Reason, maxWords))
	s.line("to do", advice(r))
	if r.ModelText != "" {
		s.line("model sees", quoted(r.ModelText, 2*maxWords))
	} else {
		s.line("result", content(f.result))
	}
	return s.String()
}

// A sheet is a report as it is written.
type sheet struct{ strings.Builder }

// line adds what stands under a label, unless that is nothing.
func (s *sheet) line(label, text string) {
	if text != "" {
		s.WriteString(paragraph(fmt.Sprintf("  %-*s", margin-2, label), text, margin))
	}
}

// attempts tells how often the call was sent, and each attempt where there were
// several.
func (s *sheet) attempts(r *observe.Record) {
	posts := ""
	if overHTTP(r) {
		posts = count(r.PostCount, "POST") + " in "
	}
	s.line("sent", posts+count(len(r.Attempts), "attempt"))
	if len(r.Attempts) < 2 {
		return
	}
	for i, a := range r.Attempts {
		text := string(a.Outcome)
		if a.HTTPStatus != 0 {
			text += " " + strconv.Itoa(a.HTTPStatus)
		}
		text += fmt.Sprintf(", %s, in %s", a.Delivery, duration(a.DurationMs))
		if a.WaitMs > 0 {
			text += ", after a wait of " + duration(a.WaitMs)
		}
		s.line("  no. "+strconv.Itoa(i+1), text)
	}
}

// seen is what went wrong, in the library's words.
func seen(f *finding) string {
	own, ok := middleware.ErrorFrom(f.err)
	if !ok {
		own, ok = middleware.FailureOf(f.result)
	}
	if !ok {
		return ""
	}
	text := own.Reason
	if own.Location != "" {
		text += ", to " + own.Location
	}
	return plain(text, maxWords)
}

func safety(r *observe.Record) string {
	if r.Rule == "default" {
		return r.Safety + ", by default"
	}
	return r.Safety + ", by " + plain(r.Rule, maxWords)
}

// rpcMessage is the server's JSON-RPC error, as it put it.
func rpcMessage(r *observe.Record) string {
	if r.JSONRPC.ErrorCode == nil {
		return ""
	}
	text := "says " + quoted(r.JSONRPC.ErrorMessage, maxWords)
	if r.JSONRPC.ErrorData != "" {
		text += " with " + plain(r.JSONRPC.ErrorData, maxWords)
	}
	return text
}

// noted are the ways in which the answer departs from the specifications, and who
// sent the call again if not we.
func noted(r *observe.Record) string {
	var all []string
	for _, d := range r.Deviations {
		all = append(all, strings.ReplaceAll(string(d), "_", " "))
	}
	switch r.RetryOrigin {
	case observe.OriginSDK, observe.OriginNetHTTP:
		all = append(all, "sent again by "+string(r.RetryOrigin))
	case observe.OriginCaller:
		all = append(all, "the same call failed before")
	}
	if r.Healed {
		all = append(all, "the lost session was renewed")
	}
	if r.Breaker != "" && r.Breaker != "closed" {
		all = append(all, "the circuit breaker is "+r.Breaker)
	}
	return strings.Join(all, "; ")
}

// content shows a result, shortened: each block, and how many there are.
func content(res *mcp.CallToolResult) string {
	switch {
	case res == nil:
		return ""
	case len(res.Content) == 0 && res.StructuredContent != nil:
		return plain(fmt.Sprint(res.StructuredContent), maxResult)
	case len(res.Content) == 0:
		return "empty"
	}
	text := block(res.Content[0])
	for i, c := range res.Content[1:] {
		if len(text) >= maxResult {
			return text + " | and " + count(len(res.Content)-1-i, "block") + " more"
		}
		text += " | " + block(c)
	}
	return text
}

// block shows one block of a result.
func block(c mcp.Content) string {
	switch c := c.(type) {
	case *mcp.TextContent:
		return quoted(c.Text, maxResult)
	case *mcp.ImageContent:
		return fmt.Sprintf("an image, %s, %d bytes", plain(c.MIMEType, maxName), len(c.Data))
	case *mcp.AudioContent:
		return fmt.Sprintf("a sound, %s, %d bytes", plain(c.MIMEType, maxName), len(c.Data))
	case *mcp.ResourceLink:
		return "a link to " + plain(c.URI, maxName)
	case *mcp.EmbeddedResource:
		return "an embedded resource"
	}
	return "another kind of content"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// duration shows milliseconds with three digits.
func duration(ms float64) string {
	if ms >= 1000 {
		return strconv.FormatFloat(ms/1000, 'g', 3, 64) + " s"
	}
	return strconv.FormatFloat(ms, 'g', 3, 64) + " ms"
}
