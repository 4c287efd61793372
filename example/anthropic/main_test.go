package main

import (
	"strings"
	"testing"
)

// Each story, bare and wrapped: how often the tool ran, and a part of each text that
// the model was given.
func TestStories(t *testing.T) {
	want := []struct {
		bare, wrapped       int
		bareText, wrapsText []string
	}{
		{2, 1, []string{"EOF", "pay done"}, []string{"not known whether it took effect", "held back"}},
		{2, 1, []string{"pay done"}, []string{"pay done"}},
		{2, 1, []string{"pay done", "pay done"}, []string{"pay done", "pay done"}},
		{2, 2, []string{"mail", "mail"}, []string{"mail", "mail"}},
		{2, 2, []string{"must be a date", "booked for 2026-12-24"}, []string{"must be a date", "booked for 2026-12-24"}},
		{0, 1, []string{"Too Many Requests"}, []string{"pay done"}},
		{1, 1, []string{"session not found", "pay done"}, []string{"Lisbon", "pay done"}},
	}
	all := stories()
	if len(all) != len(want) {
		t.Fatalf("%d stories", len(all))
	}
	for i, s := range all {
		for _, wrapped := range []bool{false, true} {
			end, err := s.tell(t.Context(), wrapped)
			if err != nil {
				t.Fatalf("%s: %v", s.title, err)
			}
			effects, texts := want[i].bare, want[i].bareText
			if wrapped {
				effects, texts = want[i].wrapped, want[i].wrapsText
			}
			if end.effects != effects || !holdEach(end.saw, texts) {
				t.Errorf("%s\n%s\nwant %d executions and %q", s.title, end, effects, texts)
			}
		}
	}
}

func holdEach(all, parts []string) bool {
	for i, part := range parts {
		if i >= len(all) || !strings.Contains(all[i], part) {
			return false
		}
	}
	return len(all) == len(parts)
}
