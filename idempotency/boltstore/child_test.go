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
	"holder":    hold,
	"payer":     payAll,
	"forgetful": payWithoutLedger,
	"shopper":   shop,
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
	cmd.Env = append(os.Environ(), childEnv+"="+role, fileEnv+"="+path, serverEnv+"="+server,
		"GORACE=atexit_sleep_ms=0") // or a child under the race detector takes a second to end
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

// holdElsewhere has another process hold a file, until release is called.
func holdElsewhere(t *testing.T, path string) (release func()) {
	t.Helper()
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
	return func() {
		t.Helper()
		if err := errors.Join(stdin.Close(), holder.Wait()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSecondProcess(t *testing.T) {
	path := ledgerFile(t)
	closeStore(t, open(t, path))
	release := holdElsewhere(t, path)
	start := time.Now()
	_, err := boltstore.Open(path, &boltstore.Options{Timeout: 200 * time.Millisecond})
	if !errors.Is(err, boltstore.ErrLocked) || !strings.Contains(err.Error(), path) || time.Since(start) > 2*time.Second {
		t.Errorf("while another process holds it: %v, after %s", err, time.Since(start))
	}
	release()
	open(t, path)
}

// limitFiles makes the disk of this process full: no file grows beyond a size.
func limitFiles() {
	const limit = 192 << 10
	signal.Ignore(syscall.SIGXFSZ)
	must(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}))
}
