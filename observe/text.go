package observe

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/surecall/surecall/internal/plaintext"
)

const (
	// textMargin is the column in which the texts of a record's lines begin.
	textMargin = 13
	// maxWords bounds what is shown of somebody's words, and maxName a name, in bytes.
	maxWords = 400
	maxName  = 40
)

// Text tells the record to a person: a headline and a few plain lines of at most 80
// columns, without colours, each line ended. What was seen comes first, then what it
// means, then what was decided.
func (r *Record) Text() string {
	s := &sheet{}
	s.WriteString(plaintext.Paragraph(plain(r.Tool, maxName)+"  ", r.Headline(), textMargin))
	s.line("call", r.setting())
	s.line("outcome", fmt.Sprintf("%s (%s), after %s", r.Outcome, r.Layer, duration(r.DurationMs)))
	s.line("seen", r.seen())
	s.line("delivery", r.deliveryWords())
	s.attempts(r)
	s.line("safety", r.safetyWords())
	s.line("key", r.keyWords())
	for _, l := range r.looks() {
		s.line("looked", l)
	}
	s.line("server", r.serverWords())
	s.line("body", plain(r.Excerpt, maxWords))
	s.line("noted", r.noted())
	s.line("decided", r.Decision.words())
	for i := range r.Would {
		s.line("would", r.Would[i].words())
	}
	s.disclosed("arguments", r.Arguments)
	s.disclosed("result", r.Result)
	if r.ModelText != "" {
		s.line("model sees", quote(r.ModelText, 2*maxWords))
	}
	return s.String()
}

// A sheet is a text as it is written.
type sheet struct{ strings.Builder }

// line adds what stands under a label, unless that is nothing.
func (s *sheet) line(label, text string) {
	if text != "" {
		s.WriteString(plaintext.Paragraph(fmt.Sprintf("  %-*s", textMargin-2, label), text, textMargin))
	}
}

func (s *sheet) disclosed(label string, text *string) {
	if text != nil {
		s.line(label, quote(*text, 2*maxWords))
	}
}

// attempts tells how often the call was sent, each attempt where there were several
// or one had to wait, and each POST where an attempt made several.
func (s *sheet) attempts(r *Record) {
	posts, post := "", "request"
	if r.overHTTP() {
		posts, post = count(r.PostCount, "POST")+" in ", "POST"
	}
	s.line("sent", posts+count(len(r.Attempts), "attempt"))
	for i := range r.Attempts {
		a := &r.Attempts[i]
		if len(r.Attempts) > 1 || a.WaitMs > 0 {
			s.line("  no. "+strconv.Itoa(i+1), a.words())
		}
		if len(a.Posts) < 2 && !a.heldBack() {
			continue
		}
		for j := range a.Posts {
			s.line("    "+post, a.Posts[j].words())
		}
	}
}

// heldBack reports whether the first POST of the attempt had to wait.
func (a *Attempt) heldBack() bool { return len(a.Posts) > 0 && len(a.Posts[0].Waits) > 0 }

func (a *Attempt) words() string {
	text := string(a.Outcome)
	if a.HTTPStatus != 0 {
		text += " " + strconv.Itoa(a.HTTPStatus)
	}
	text += fmt.Sprintf(", %s, in %s", a.Delivery, duration(a.DurationMs))
	if a.WaitMs > 0 {
		text += ", after a wait of " + duration(a.WaitMs)
	}
	text += reasons(a.Waits)
	if a.Reconciled != "" {
		text += "; somebody looked: it " + strings.ReplaceAll(plain(a.Reconciled, maxName), "_", " ")
	}
	return text
}

// reasons say what the waits were for.
func reasons(waits []Wait) string {
	text := ""
	for i, w := range waits {
		text += []string{" for ", " and "}[min(i, 1)] + w.For.words()
	}
	return text
}

func (w WaitReason) words() string {
	switch w {
	case WaitServer:
		return "the server"
	case WaitGate:
		return "the gate"
	case WaitLimiter:
		return "the rate limiter"
	case WaitSession:
		return "a new session"
	case WaitPutOff:
		return "the server, which put it off"
	}
	return "our " + string(w)
}

func (p *Sent) words() string {
	text := string(p.Delivery)
	if p.Outcome != "" {
		text = string(p.Outcome) + ", " + text
	}
	if p.Status != 0 {
		text = fmt.Sprintf("HTTP %d, %s", p.Status, text)
	}
	if p.Round > 1 {
		text += ", round " + strconv.Itoa(p.Round)
	}
	if p.Origin != OriginNone && p.Origin != "" {
		text += ", sent again by " + string(p.Origin)
	}
	text += ", in " + duration(p.DurationMs)
	if len(p.Waits) > 0 {
		ms := 0.0
		for _, w := range p.Waits {
			ms += w.Ms
		}
		text += ", after a wait of " + duration(ms) + reasons(p.Waits)
	}
	if p.Healed {
		text += "; the session was renewed"
	}
	return text
}

// setting says when, where and by whom the call was made.
func (r *Record) setting() string {
	if r.Time.IsZero() {
		return ""
	}
	text := r.Time.UTC().Format(time.RFC3339)
	for _, part := range []string{r.Server, version(r.ProtocolVersion), r.Client, r.Scenario} {
		if part != "" {
			text += ", " + plain(part, 2*maxName)
		}
	}
	return text
}

func version(v string) string {
	if v == "" {
		return ""
	}
	return "MCP " + v
}

// seen is what went wrong, in our words.
func (r *Record) seen() string {
	text := r.Reason
	if r.Location != "" {
		text += ", to " + r.Location
	}
	return plain(text, maxWords)
}

// deliveryWords say what the evidence tells about execution.
func (r *Record) deliveryWords() string {
	switch r.Delivery {
	case NotSent:
		return "not_sent: nothing of the call reached a server"
	case Refused:
		return "refused: the server did not run the tool"
	case Answered:
		return "answered: one complete answer came"
	}
	if r.Safety == "read_only" {
		return "unknown: the tool may have run, but it only reads"
	}
	return "unknown: the tool may have run, or not"
}

func (r *Record) safetyWords() string {
	if r.Rule == "default" {
		return r.Safety + ", by default"
	}
	return r.Safety + ", by " + plain(r.Rule, maxWords)
}

// keyWords say what key the call had and what the ledger did.
func (r *Record) keyWords() string {
	if r.Ledger == nil {
		return ""
	}
	text := "none"
	if r.IdempotencyKey != "" {
		text = plain(r.IdempotencyKey, maxName)
	}
	text += "; ledger: " + string(r.Ledger.Step)
	if r.Ledger.Kind != "" {
		text += " (" + plain(r.Ledger.Kind, maxName) + ")"
	}
	if r.Ledger.Since != nil {
		text += ", since " + r.Ledger.Since.UTC().Format(time.RFC3339)
	}
	if r.Ledger.Settled != "" {
		text += ", left as " + plain(r.Ledger.Settled, maxName)
	}
	return text
}

// looks tell what the host found out about calls in doubt.
func (r *Record) looks() []string {
	if r.Ledger == nil {
		return nil
	}
	var all []string
	for _, l := range r.Ledger.Reconciled {
		text := strings.ReplaceAll(plain(l.Finding, maxName), "_", " ") + ", in " + duration(l.DurationMs)
		if l.Error != "" {
			text += ": " + plain(l.Error, maxWords)
		}
		all = append(all, text)
	}
	return all
}

// serverWords are the server's JSON-RPC error, as it put it.
func (r *Record) serverWords() string {
	if r.JSONRPC.ErrorCode == nil {
		return ""
	}
	text := "says " + quote(r.JSONRPC.ErrorMessage, maxWords)
	if r.JSONRPC.ErrorData != "" {
		text += " with " + plain(r.JSONRPC.ErrorData, maxWords)
	}
	return text
}

// noted are the ways in which the answer departs from the specifications, and who
// sent the call again if not we.
func (r *Record) noted() string {
	var all []string
	for _, d := range r.Deviations {
		all = append(all, strings.ReplaceAll(string(d), "_", " "))
	}
	switch r.RetryOrigin {
	case OriginSDK, OriginNetHTTP:
		all = append(all, "sent again by "+string(r.RetryOrigin))
	case OriginCaller:
		all = append(all, "the same call failed before")
	case OriginUser:
		all = append(all, "a person asked for it again")
	}
	if r.Healed {
		all = append(all, "the lost session was renewed")
	}
	if r.Breaker != "" && r.Breaker != "closed" {
		all = append(all, "the circuit breaker is "+r.Breaker)
	}
	if r.Limiter != nil && r.Limiter.Tokens < 1 {
		all = append(all, "the rate limiter has no token left")
	}
	return strings.Join(all, "; ")
}

func (c *Choice) words() string {
	text := c.Action + ": " + plain(c.Reason, maxWords)
	if c.WaitMs > 0 {
		text += ", after " + duration(c.WaitMs)
	}
	return text
}

// plain makes a text fit for a terminal and for one line: what is not visible becomes
// a blank, credentials go, and the rest is cut to max bytes.
func plain(text string, max int) string {
	cut := len(text) > max
	text = plaintext.OneLine(Redact(text, max))
	if cut {
		text += "…"
	}
	return text
}

func quote(text string, max int) string { return `"` + plain(text, max) + `"` }

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
