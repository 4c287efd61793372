package main

import (
	"errors"
	"fmt"
	"strings"
)

// splitWords splits a command into words as a POSIX shell does (IEEE 1003.1, Shell
// Command Language, section 2.2): blanks separate; single quotes keep everything;
// double quotes keep blanks, and in them a backslash keeps one of $`"\; elsewhere a
// backslash keeps any character. Nothing is expanded.
func splitWords(s string) ([]string, error) {
	w := words{rest: s, length: len(s)}
	for w.rest != "" {
		if err := w.step(); err != nil {
			return nil, err
		}
	}
	w.end()
	if len(w.done) == 0 || w.done[0] == "" {
		return nil, errors.New("no program to start")
	}
	return w.done, nil
}

type words struct {
	rest   string
	length int // of the whole text
	done   []string
	word   strings.Builder
	inWord bool // also for a word that is empty so far: ""
}

// step takes a character, or a quoted run of them.
func (w *words) step() error {
	at := w.length - len(w.rest)
	c := w.rest[0]
	w.rest = w.rest[1:]
	switch c {
	case ' ', '\t', '\n':
		w.end()
		return nil
	case '\'', '"':
		w.inWord = true
		if !w.quoted(c) {
			return fmt.Errorf("the quote %c at byte %d is not closed", c, at+1)
		}
		return nil
	case '\\':
		if w.rest == "" {
			return errors.New("a backslash at the end keeps nothing")
		}
		c, w.rest = w.rest[0], w.rest[1:]
	}
	w.inWord = true
	w.word.WriteByte(c)
	return nil
}

// quoted takes what stands before the closing quote, and reports whether there is
// one.
func (w *words) quoted(quote byte) bool {
	for i := 0; i < len(w.rest); i++ {
		switch c := w.rest[i]; {
		case c == quote:
			w.rest = w.rest[i+1:]
			return true
		case c == '\\' && quote == '"' && i+1 < len(w.rest) && strings.IndexByte("$`\"\\", w.rest[i+1]) >= 0:
			i++
			w.word.WriteByte(w.rest[i])
		default:
			w.word.WriteByte(c)
		}
	}
	return false
}

func (w *words) end() {
	if w.inWord {
		w.done = append(w.done, w.word.String())
		w.word.Reset()
		w.inWord = false
	}
}
