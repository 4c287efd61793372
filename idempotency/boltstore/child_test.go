//go:build unix

package boltstore_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/surecall/surecall/idempotency"
	"github.com/surecall/surecall/idempotency/boltstore"
)

// Some tests need another process: this binary again, told by its environment which
// of these to be.
const (
	childEnv  = "SURECALL_TEST_CHILD"
	fileEnv   = "SURECALL_TEST_FILE"
	serverEnv = "SURECALL_TEST_SERVER"
)

var children = map[string]func(path, server string){
	"holder": hold,
	"filler": fill,
	"payer":  payAll,
}

// TestMain is the child where the environment names one.
func TestMain(m *testing.M) {
	if be := children[os.Getenv(childEnv)]; be != nil {
		be(os.Getenv(fileEnv), os.Getenv(serverEnv))
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func child(t *testing.T, role, path, server string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+role, fileEnv+"="+path, serverEnv+"="+server)
	return cmd
}

func must(err error) {
	if err != nil {
		fmt.Println("child:", err)
		os.Exit(2)
	}
}

// hold keeps the file open until its input ends.
func hold(path, _ string) {
	_, err := boltstore.Open(path, nil)
	must(err)
	fmt.Println("held")
	_, _ = io.ReadAll(os.Stdin)
}

func TestSecondProcess(t *testing.T) {
	path := ledgerFile(t)
	closeStore(t, open(t, path))
	holder := child(t, "holder", path, "")
	stdin, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, len("held\n"))); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	_, err = boltstore.Open(path, &boltstore.Options{Timeout: 200 * time.Millisecond})
	if !errors.Is(err, boltstore.ErrLocked) || !strings.Contains(err.Error(), path) || time.Since(start) > 2*time.Second {
		t.Errorf("while another process holds it: %v, after %s", err, time.Since(start))
	}
	if err := errors.Join(stdin.Close(), holder.Wait()); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

// fill makes calls until the file may not grow any more.
func fill(path, _ string) {
	s, err := boltstore.Open(path, nil)
	must(err)
	signal.Ignore(syscall.SIGXFSZ)
	const limit = 192 << 10
	must(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}))
	l := idempotency.NewLedger(s, nil)
	for i := 0; ; i++ {
		t, err := l.Begin(background, call(i))
		if err != nil {
			fmt.Printf("begin %d: %v\n", i, err)
			break
		}
		answer := idempotency.Settlement{State: idempotency.Completed, Answer: make([]byte, 5000)}
		if err := t.Settle(background, answer); err != nil {
			fmt.Printf("settle %d: %v\n", i, err)
			continue // the next one shows whether nothing is sent any more
		}
		fmt.Printf("done %d\n", i)
	}
	_, err = l.Begin(background, call(0))
	fmt.Printf("again 0: %v\n", err)
}

// On a full disk no call is begun, and what was written stays.
func TestFullDisk(t *testing.T) {
	path := ledgerFile(t)
	out, err := child(t, "filler", path, "").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if n := len(lines); n < 5 || !strings.HasPrefix(lines[n-2], "begin ") || lines[n-1] != "again 0: <nil>" {
		t.Fatalf("the child said:\n%s", out)
	}
	if refusal := lines[len(lines)-2]; !strings.Contains(refusal, "nothing was sent") || !strings.Contains(refusal, path) || !strings.Contains(refusal, "see to the disk") {
		t.Errorf("refused with %s", refusal)
	}
	l := idempotency.NewLedger(open(t, path), nil)
	for _, line := range lines[:len(lines)-1] {
		var i int
		verb, rest, _ := strings.Cut(line, " ")
		_, _ = fmt.Sscan(strings.TrimSuffix(strings.Fields(rest)[0], ":"), &i)
		ticket, err := l.Begin(t.Context(), call(i))
		var e *idempotency.Error
		switch {
		case verb == "done" && (err != nil || ticket.Answer() == nil):
			t.Errorf("call %d was answered, and now: %v", i, err)
		case verb == "settle" && (!errors.As(err, &e) || e.Kind != idempotency.KindUnknown):
			t.Errorf("call %d could not be settled, and now: %v", i, err)
		case verb == "begin" && (err != nil || ticket.Answer() != nil):
			t.Errorf("call %d was not begun, and now: %v", i, err)
		}
	}
}
