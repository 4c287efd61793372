package policy

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// textWidth is the number of columns that the text of an explanation keeps to, where
// its words let it.
const textWidth = 80

// String is the explanation as a text of 80 columns: a table of the settings, and then
// what is done after an attempt, row by row.
func (e *Explanation) String() string {
	var b strings.Builder
	wrap(&b, "", "", fmt.Sprintf("The policy for tool %q of server %q", e.Tool, e.Server))
	fmt.Fprintf(&b, "\n%-23s %-23s %s\n", "SETTING", "VALUE", "FROM")
	for _, s := range e.Settings {
		s.write(&b)
	}
	b.WriteString("\nWHAT IS DONE WHEN THE FIRST ATTEMPT ENDED AS\n")
	for _, d := range e.Decisions {
		d.write(&b)
	}
	b.WriteByte('\n')
	wrap(&b, "", "", e.bounds())
	return b.String()
}

// bounds is what holds for every repeat.
func (e *Explanation) bounds() string {
	value := func(f field) string { return fields[f].name + " is " + e.Settings[f-1].Value }
	return "Every repeat is bounded: " + value(fieldRepeats) + ", " + value(fieldBudget) + "; the backoff doubles, and " + value(fieldBackoffCap) +
		"; a server's wait is kept in full, and " + value(fieldRetryAfterCap) + ", beyond which the call stops. " +
		"A wait that cannot end before the deadline stops the call at once, and so does a server's word not to repeat it. " +
		"What may have run in an earlier attempt of the call counts in every later one."
}

func (s *ExplainedSetting) write(b *strings.Builder) {
	line := fmt.Sprintf("%-23s %-23s %s", s.Name, s.Value, s.from())
	if len(s.Value) <= 23 && len([]rune(line)) <= textWidth {
		b.WriteString(line + "\n")
		return
	}
	wrap(b, fmt.Sprintf("%-23s ", s.Name), strings.Repeat(" ", 24), s.Value)
	wrap(b, strings.Repeat(" ", 48), strings.Repeat(" ", 48), s.from())
}

func (s *ExplainedSetting) from() string { return from(s.Source, s.Place) }

func from(source, place string) string {
	switch {
	case place == "":
		return source
	case strings.HasPrefix(source, "rules["): // the place says it better
		return place
	}
	return place + " " + source
}

func (d *ExplainedDecision) write(b *strings.Builder) {
	wrap(b, "", "  ", d.When+" ("+d.Delivery+")")
	done := string(Stop)
	if d.Decision.Action == Repeat {
		done = "repeat " + longestWait(d.Decision)
		if d.Once {
			done = "repeat once, " + longestWait(d.Decision)
		}
	}
	why := done + ": " + d.Decision.Reason
	if d.Setting != "" {
		why += " [" + d.Setting + ", " + from(d.Decision.Rule, d.Place) + "]"
	}
	wrap(b, "    ", "    ", why)
}

// wrap writes words into lines that begin with the indents and are no longer than the
// width, if no word is.
func wrap(b *strings.Builder, first, next, text string) {
	b.WriteString(first)
	column, begun := len(first), false
	for word := range strings.FieldsSeq(text) {
		n := len([]rune(word))
		switch {
		case begun && column+1+n > textWidth:
			b.WriteString("\n" + next + word)
			column = len(next) + n
			continue
		case begun:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
		begun = true
	}
	b.WriteByte('\n')
}

// flow is a node in one line.
func flow(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		items := make([]string, len(n.Content))
		for i, item := range n.Content {
			items[i] = flow(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case yaml.MappingNode:
		var pairs []string
		for i := 0; i+1 < len(n.Content); i += 2 {
			pairs = append(pairs, n.Content[i].Value+": "+flow(n.Content[i+1]))
		}
		return "{" + strings.Join(pairs, ", ") + "}"
	}
	return n.Value
}
