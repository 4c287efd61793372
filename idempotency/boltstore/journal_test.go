//go:build unix

package boltstore_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/idempotency"
)

// A point is how far a payer has come with an intent. It writes the point on its
// standard output before it goes on, where it can be read after it was killed.
type point string

const (
	ready     point = "ready"     // the file is open, the sessions too
	asked     point = "asked"     // the host calls CallTool
	beginning point = "beginning" // the ledger writes that the call starts
	begun     point = "begun"     // that is on disk
	sent      point = "sent"      // the SDK has the call
	answered  point = "answered"  // the SDK has given an answer or an error
	settling  point = "settling"  // the ledger writes what became of the call
	settled   point = "settled"   // that is on disk
	ended     point = "ended"     // the host has been told, and how
)

// A journal writes points. It loiters after most of them, so that kills find it also
// where there is little to do.
type journal struct {
	intent int
	random *rand.Rand
	pause  time.Duration // at most, at a point
}

func (j *journal) reach(p point, how ...string) {
	fmt.Println(p, j.intent, strings.Join(how, " "))
	if j.pause > 0 && p != sent && p != beginning && p != settling {
		time.Sleep(time.Duration(j.random.Int64N(int64(j.pause))))
	}
}

// store tells when a store writes.
func (j *journal) store(s idempotency.Store) idempotency.Store { return journalStore{s, j} }

type journalStore struct {
	idempotency.Store
	journal *journal
}

func (s journalStore) Put(ctx context.Context, e idempotency.Entry, now time.Time) error {
	before, after := settling, settled
	if e.State == idempotency.Started {
		before, after = beginning, begun
	}
	s.journal.reach(before)
	err := s.Store.Put(ctx, e, now)
	s.journal.reach(after)
	return err
}

// middleware tells when the SDK gets a call and what it gives back.
func (j *journal) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != "tools/call" {
			return next(ctx, method, req)
		}
		j.reach(sent)
		res, err := next(ctx, method, req)
		j.reach(answered)
		return res, err
	}
}

// readJournal passes on every whole line of a journal; what is none is returned.
func readJournal(from io.Reader, pass func(p point, intent int, how string)) (other []string) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return other
		}
		fields := strings.SplitN(strings.TrimRight(line, "\n"), " ", 3)
		intent, err := strconv.Atoi(fields[min(1, len(fields)-1)])
		if len(fields) < 3 || err != nil {
			other = append(other, line)
			continue
		}
		pass(point(fields[0]), intent, fields[2])
	}
}
