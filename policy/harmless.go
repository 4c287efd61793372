package policy

// A harmless knows which rules let a tool be more than unsafe: by a safety class of
// their own, or by trusting what the server says.
type harmless struct {
	rules []*Rule
	steps int // taken to compare globs
}

const (
	noneHarmless = "an unsafe tool is never repeated for this, and no rule makes a tool that this one matches read_only, idempotent or keyed"
	noneKeyed    = "only keyed tools have a key header, and no rule makes a tool that this one matches keyed"
)

// mostSteps bounds the comparing; beyond it everything is taken to overlap. No ordinary
// file comes near.
const mostSteps = 2_000_000

func (p *Policy) harmless() *harmless {
	h := &harmless{}
	for i := range p.Rules {
		s := &p.Rules[i].Settings
		// A misspelt class is reported by itself.
		if s.Safety != "" && s.Safety != Unsafe || s.trusts() {
			h.rules = append(h.rules, &p.Rules[i])
		}
	}
	return h
}

func (s *Settings) trusts() bool { return s.TrustAnnotations != nil && *s.TrustAnnotations }

// reaches reports whether a tool that the rule matches may be harmless, or keyed where
// only that is asked for. A rule that speaks first may take the class away again; that
// is not looked at.
func (h *harmless) reaches(r *Rule, keyed bool) bool {
	for _, other := range h.rules {
		if keyed && other.Safety.Valid() && other.Safety != Keyed && !other.trusts() {
			continue
		}
		if h.overlap(r.Tool, other.Tool) && h.overlap(r.Server, other.Server) {
			return true
		}
	}
	return false
}

// overlap reports whether a name can match both globs.
func (h *harmless) overlap(a, b string) bool {
	h.steps++
	switch {
	case a == "" || b == "" || a == b, h.steps > mostSteps:
		return true
	case !sameStart(a, b):
		return false
	case h.steps+len(a)*len(b) > mostSteps:
		return true
	}
	h.steps += len(a) * len(b)
	return overlap([]rune(a), []rune(b))
}

// sameStart compares the texts before the first wildcard of either.
func sameStart(a, b string) bool {
	for i := range min(len(a), len(b)) {
		switch {
		case isWild(a[i]), isWild(b[i]):
			return true
		case a[i] != b[i]:
			return false
		}
	}
	return true
}

func isWild(c byte) bool { return c == '*' || c == '?' }

// overlap goes through a character by character: can[j] says that what follows in a,
// and what follows in b from j on, can be the same text.
func overlap(a, b []rune) bool {
	can, next := make([]bool, len(b)+1), make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		for j := len(b); j >= 0; j-- {
			switch {
			case i == len(a) && j == len(b):
				can[j] = true
			case i < len(a) && a[i] == '*':
				can[j] = next[j] || j < len(b) && can[j+1]
			case j < len(b) && b[j] == '*':
				can[j] = can[j+1] || i < len(a) && next[j]
			default:
				same := i < len(a) && j < len(b) && (a[i] == b[j] || a[i] == '?' || b[j] == '?')
				can[j] = same && next[j+1]
			}
		}
		can, next = next, can
	}
	return next[0]
}
