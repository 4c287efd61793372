package idempotency_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/surecall/surecall/idempotency"
)

// The ledger against a model that keeps every call in a list and looks at all of
// them, in words as close to the rules as it can: no store, no index, no revision.

const retention = 24 * time.Hour

type modelCall struct {
	principal, server string
	names             [2]string // the intent's or the key's, and the key's
	key               string    // "" for one that nobody can know
	args              byte
	state             idempotency.State
	doubt             bool
	running           bool // in this process
	named             bool
	started, changed  time.Time
	answer            string
	ticket            *idempotency.Ticket
}

// A modelAlias is a second name of a call: an intent's, whose key was the call's.
type modelAlias struct {
	principal, server string
	name, target      string
	args              byte
	until, perhaps    time.Time // when it ends
}

type model struct {
	calls   []*modelCall
	aliases []*modelAlias
	now     time.Time
	opened  time.Time
}

// A verdict is what must become of a call.
type verdict struct {
	outcome  string       // several are joined by " or "
	of       []*modelCall // those it may be a repeat of
	names    [2]string
	followed []*modelAlias
	alias    string // the call that its intent becomes a second name of
}

// follow goes from second names to a call's own. It returns them, and whether all
// were those of the same call. Whoever asks by an alias keeps it: it must not end
// before the call, which ends a retention after it was settled, and that is not more
// than a retention from now.
func (m *model) follow(c idempotency.Call, names *[2]string) (followed []*modelAlias, same bool) {
	for a := m.alias(c, names[0]); a != nil; a = m.alias(c, names[0]) {
		if a.args != c.Fingerprint[0] {
			return followed, false
		}
		a.perhaps = m.now.Add(2 * retention)
		followed = append(followed, a)
		names[0] = a.target
		if c.Key == "" {
			names[1] = a.target
		}
	}
	return followed, true
}

// unsure reports whether an alias may have ended, or not: it was asked for by a call
// whose key was under way, and which may not have come to its intent.
func (m *model) unsure() bool {
	return slices.ContainsFunc(m.aliases, func(a *modelAlias) bool { return !m.now.Before(a.until) && m.now.Before(a.perhaps) })
}

// keep says that a call has come to all its aliases.
func keep(followed []*modelAlias) {
	for _, a := range followed {
		a.until = a.perhaps
	}
}

// names are those by which a call can be asked for again.
func names(c idempotency.Call) [2]string {
	i, k := "", ""
	if c.Intent != "" {
		i = "intent " + c.Tool + " " + c.Intent
		k = i
	}
	if c.Key != "" {
		k = "key " + c.Key
		if i == "" {
			i = k
		}
	}
	return [2]string{i, k}
}

// alias returns what an intent is a second name of, or nil.
func (m *model) alias(c idempotency.Call, intent string) *modelAlias {
	for i := len(m.aliases) - 1; i >= 0; i-- {
		a := m.aliases[i]
		if c.Intent != "" && a.principal == c.Principal && a.server == c.Server && a.name == intent && m.now.Before(a.until) {
			return a
		}
	}
	return nil
}

func (m *model) live() []*modelCall {
	return slices.DeleteFunc(slices.Clone(m.calls), func(x *modelCall) bool {
		return !m.now.Before(x.changed.Add(retention)) || !x.named && !x.unresolved()
	})
}

func (x *modelCall) unresolved() bool {
	return x.state == idempotency.Started || x.state == idempotency.Unknown
}

// own is the same call: by its first name, or else by its key.
func (m *model) own(c idempotency.Call, names [2]string) *modelCall {
	for _, n := range names {
		for _, x := range m.live() {
			if n != "" && x.principal == c.Principal && x.server == c.Server && slices.Contains(x.names[:], n) {
				return x
			}
		}
	}
	return nil
}

// equal are the latest equal calls in doubt, within the window.
func (m *model) equal(c idempotency.Call) []*modelCall {
	var latest []*modelCall
	var until time.Time
	for _, x := range m.live() {
		if x.principal != c.Principal || x.server != c.Server || x.args != c.Fingerprint[0] || !x.unresolved() || x.running && !x.doubt {
			continue
		}
		from := x.changed
		if x.running {
			from = m.now
		} else if x.state == idempotency.Started && from.Before(m.opened) {
			from = m.opened
		}
		end := from.Add(c.GuardWindow)
		switch {
		case !m.now.Before(end) || end.Before(until):
		case end.Equal(until):
			latest = append(latest, x)
		default:
			latest, until = []*modelCall{x}, end
		}
	}
	return latest
}

// begin says what must become of a call.
func (m *model) begin(c idempotency.Call) verdict {
	v := verdict{names: names(c)}
	var same bool
	if v.followed, same = m.follow(c, &v.names); !same {
		v.outcome = m.mismatch(c)
		return v
	}
	guarded := c.GuardWindow > 0 && !c.RepeatAllowed
	if x := m.own(c, v.names); x != nil {
		m.repeat(c, x, guarded, &v)
		if v.outcome != "mismatch" && !strings.HasPrefix(v.outcome, "running") && c.Intent != "" && x.names[0] != v.names[0] {
			v.alias = x.names[0]
		}
		return v
	}
	equal := m.equal(c)
	switch {
	case !guarded || len(equal) == 0 || c.Keyed && (c.Intent != "" || c.Key != ""):
		v.outcome = "send"
	case !c.Keyed:
		v.outcome = "equal"
	default:
		v.outcome, v.of = adoption(equal), equal
	}
	return v
}

// adoption is what becomes of a keyed call when one of some equal ones, all as late
// as each other, is repeated.
func adoption(equal []*modelCall) string {
	running := 0
	for _, x := range equal {
		if x.running {
			running++
		}
	}
	switch running {
	case 0:
		return "send adopted"
	case len(equal):
		return "running"
	}
	return "send adopted or running"
}

func (m *model) repeat(c idempotency.Call, x *modelCall, guarded bool, v *verdict) {
	switch {
	case c.Key != "" && x.names[1] != "key "+c.Key:
		v.outcome = m.mismatch(c)
		if x.running {
			v.outcome = "running or mismatch"
		}
	case x.args != c.Fingerprint[0]:
		v.outcome = "mismatch"
	case x.running:
		v.outcome = "running"
	case x.state == idempotency.Completed && x.answer == "":
		v.outcome = "not_kept"
	case x.state == idempotency.Completed:
		v.outcome = "answer " + x.answer
	case x.state == idempotency.Failed && guarded && !c.Keyed && len(m.equal(c)) > 0:
		v.outcome = "equal"
	case x.state == idempotency.Failed || c.Keyed || c.RepeatAllowed:
		v.outcome, v.of = "send", []*modelCall{x}
	default:
		v.outcome = "unknown"
	}
}

// mismatch is what a call is told whose intent belongs to one call and whose key to
// another: which of the two it comes to first does not matter.
func (m *model) mismatch(c idempotency.Call) string {
	if slices.ContainsFunc(m.live(), func(x *modelCall) bool {
		return x.running && x.principal == c.Principal && x.server == c.Server && slices.Contains(x.names[:], "key "+c.Key)
	}) {
		return "running or mismatch"
	}
	return "mismatch"
}

// begun notes what a verdict has led to: a new call, or a repeat with the key of
// one that it may be a repeat of.
func (m *model) begun(t *rapid.T, c idempotency.Call, v verdict, got string, ticket *idempotency.Ticket) {
	if got != "running" && got != "mismatch" {
		keep(v.followed)
	}
	end := m.now.Add(2 * retention)
	switch n := len(v.followed); {
	case v.alias != "" && n > 0:
		v.followed[n-1].target = v.alias
	case v.alias != "":
		m.aliases = append(m.aliases, &modelAlias{c.Principal, c.Server, names(c)[0], v.alias, c.Fingerprint[0], end, end})
	}
	if ticket == nil || ticket.Answer() != nil {
		return
	}
	x := &modelCall{principal: c.Principal, server: c.Server, names: v.names, key: ticket.Key(), args: c.Fingerprint[0]}
	if len(v.of) == 0 {
		m.calls = append(m.calls, x)
	} else {
		i := slices.IndexFunc(v.of, func(o *modelCall) bool { return o.key == ticket.Key() })
		if i < 0 {
			t.Fatalf("a repeat has key %q, which no earlier call had", ticket.Key())
		}
		x = v.of[i]
	}
	x.doubt = x.unresolved()
	if !x.doubt {
		x.started = m.now
	}
	x.state, x.running, x.changed, x.ticket = idempotency.Started, true, m.now, ticket
	x.named = x.named || c.Intent != "" || c.Key != ""
}

func (x *modelCall) settle(s idempotency.Settlement, now time.Time) {
	x.state, x.answer = s.State, string(s.Answer)
	if s.State == idempotency.Failed && x.doubt && !s.Verified {
		x.state = idempotency.Unknown
	}
	x.doubt, x.running, x.changed = x.state == idempotency.Unknown, false, now
}

func TestLedgerAgainstModel(t *testing.T) {
	outcomes := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		b := newBook(t, idempotency.LedgerOptions{})
		m := &model{now: b.now, opened: b.now}
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				c := drawCall(t)
				if m.unsure() {
					t.Skip("two things may become of it")
				}
				v := m.begin(c)
				got, ticket := b.try(c)
				if !slices.Contains(strings.Split(v.outcome, " or "), got) {
					t.Fatalf("%+v: %s, want %s", c, got, v.outcome)
				}
				outcomes[got]++
				m.begun(t, c, v, got, ticket)
			},
			"settle": func(t *rapid.T) {
				x := drawRunning(t, m)
				s := drawSettlement(t)
				b.settle(x.ticket, s)
				x.settle(s, m.now)
			},
			"wait": func(t *rapid.T) {
				d := rapid.SampledFrom([]time.Duration{time.Second, 5 * time.Minute, window, time.Hour, retention - time.Second, retention}).Draw(t, "for")
				if m.outlives(d) {
					t.Skip("no call takes longer than its retention")
				}
				b.now = b.now.Add(d)
				m.now = b.now
			},
			"die": func(*rapid.T) {
				b.restart()
				m.opened = m.now
				for _, x := range m.calls {
					x.running = false
				}
			},
			"resolve": func(t *rapid.T) {
				c, s := drawCall(t), drawSettlement(t)
				if m.unsure() {
					t.Skip("two things may become of it")
				}
				resolved, err := b.Resolve(t.Context(), c, s)
				if want := m.resolve(c, s); err != nil || resolved != want {
					t.Fatalf("%+v resolved: %t, %v; want %t", c, resolved, err, want)
				}
			},
		})
	})
	for _, o := range []string{"send", "send adopted", "equal", "unknown", "mismatch", "running", "not_kept", "answer 1"} {
		if outcomes[o] == 0 {
			t.Errorf("no call came to %q: %v", o, outcomes)
		}
	}
}

// outlives reports whether a call under way would be forgotten after d.
func (m *model) outlives(d time.Duration) bool {
	return slices.ContainsFunc(m.calls, func(x *modelCall) bool {
		return x.running && !m.now.Add(d).Before(x.changed.Add(retention))
	})
}

func (m *model) resolve(c idempotency.Call, s idempotency.Settlement) bool {
	if s.State == idempotency.Unknown {
		return false
	}
	s.Verified = true
	all := m.inTheWay(c)
	for _, x := range all {
		x.settle(s, m.now)
	}
	return len(all) > 0
}

func (m *model) inTheWay(c idempotency.Call) []*modelCall {
	n := names(c)
	followed, same := m.follow(c, &n)
	keep(followed)
	if !same {
		return nil
	}
	if x := m.own(c, n); x != nil {
		if x.unresolved() && !x.running && x.args == c.Fingerprint[0] && (c.Key == "" || x.names[1] == "key "+c.Key) {
			return []*modelCall{x}
		}
		return nil
	}
	return slices.DeleteFunc(m.live(), func(x *modelCall) bool {
		from := x.changed
		if x.state == idempotency.Started && from.Before(m.opened) {
			from = m.opened
		}
		return x.principal != c.Principal || x.server != c.Server || x.args != c.Fingerprint[0] ||
			!x.unresolved() || x.running || !m.now.Before(from.Add(c.GuardWindow))
	})
}

func drawCall(t *rapid.T) idempotency.Call {
	pick := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	c := idempotency.Call{
		Principal: pick("principal", "ann", "ann", "ann", "bob"),
		Server:    pick("server", "bank", "bank", "bank", "shop"),
		Tool:      pick("tool", "pay", "pay", "send"),
		Intent:    pick("intent", "", "i", "i", "j"),
		Key:       pick("key", "", "", "k", "l"),
		Keyed:     rapid.Bool().Draw(t, "keyed"),
	}
	// A fingerprint covers the tool.
	c.Fingerprint[0] = rapid.SampledFrom([]byte{1, 1, 1, 2}).Draw(t, "args")
	if c.Tool == "send" {
		c.Fingerprint[0] += 2
	}
	if rapid.IntRange(0, 3).Draw(t, "guarded") > 0 {
		c.GuardWindow = window
	}
	c.RepeatAllowed = rapid.IntRange(0, 7).Draw(t, "allowed") == 0
	return c
}

func drawSettlement(t *rapid.T) idempotency.Settlement {
	s := idempotency.Settlement{
		State:    rapid.SampledFrom([]idempotency.State{idempotency.Failed, idempotency.Completed, idempotency.Unknown, idempotency.Unknown}).Draw(t, "state"),
		Verified: rapid.IntRange(0, 3).Draw(t, "verified") == 0,
	}
	if n := rapid.IntRange(0, 2).Draw(t, "answer"); s.State == idempotency.Completed && n > 0 {
		s.Answer = []byte(fmt.Sprint(n))
	}
	return s
}

func drawRunning(t *rapid.T, m *model) *modelCall {
	var running []*modelCall
	for _, x := range m.calls {
		if x.running {
			running = append(running, x)
		}
	}
	if len(running) == 0 {
		t.Skip("nothing is under way")
	}
	return rapid.SampledFrom(running).Draw(t, "call")
}
