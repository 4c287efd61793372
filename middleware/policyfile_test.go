package middleware_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/surecall/surecall/middleware"
	"github.com/surecall/surecall/policy"
)

const (
	readsFile  = "version: 1\nrules:\n  - {name: reads, tool: t, safety: read_only}\n"
	labelsFile = "version: 1\nrules:\n  - {name: labels, tool: t, safety: idempotent}\n"
)

// watched is a stack whose policy file is watched in fake time.
type watched struct {
	*bench
	path string

	mu   sync.Mutex
	told []string // what OnChange was told, in short
	log  bytes.Buffer
}

// Write takes a line of the log.
func (w *watched) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(line)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func replace(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// watch runs a test with a file that is watched every 2 s.
func watch(t *testing.T, path string, test func(*testing.T, *watched)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &watched{bench: newBench(t, unavailable(0)), path: path}
		defer w.session.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err := w.stack.WatchPolicy(ctx, path, &middleware.WatchOptions{
			OnChange: func(p *policy.Policy, err error) {
				w.mu.Lock()
				defer w.mu.Unlock()
				if (p == nil) == (err == nil) {
					t.Errorf("told of policy %v and error %v", p, err)
				}
				if err != nil {
					w.told = append(w.told, err.Error())
				} else {
					w.told = append(w.told, "new")
				}
			},
			Logger: slog.New(slog.NewTextHandler(w, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		w.is(t, "read_only")
		test(t, w)
		cancel()
		synctest.Wait()
	})
}

// looks lets n looks at the file pass.
func (w *watched) looks(n int) {
	time.Sleep(time.Duration(n) * 2 * time.Second)
	synctest.Wait()
}

// is checks which policy a call has.
func (w *watched) is(t *testing.T, safety string) {
	t.Helper()
	if _, rec, err := w.call("t", 0); err != nil || rec.Safety != safety {
		t.Errorf("the tool is %s, want %s (%v)", rec.Safety, safety, err)
	}
}

// saw checks what was told and logged since the last time; an empty text stands for a
// new policy.
func (w *watched) saw(t *testing.T, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.told) != len(want) || strings.Count(w.log.String(), "\n") != len(want) {
		t.Fatalf("told %q, want %q; logged %s", w.told, want, &w.log)
	}
	for i, told := range w.told {
		if want[i] == "" && told != "new" || !strings.Contains(told, want[i]) {
			t.Errorf("told %q, want %q", told, want[i])
		}
	}
	w.told = nil
	w.log.Reset()
}

func policyPath(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, readsFile)
	return path
}

// TestWatchTakesChanges however they come about.
func TestWatchTakesChanges(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path string){
		"written over": func(t *testing.T, path string) { write(t, path, labelsFile) },
		"rename and replace": func(t *testing.T, path string) {
			write(t, path+".tmp", labelsFile)
			replace(t, path, path+"~")
			replace(t, path+".tmp", path)
		},
		"same size and time": func(t *testing.T, path string) {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, strings.NewReplacer("reads", "read", "read_only", "idempotent").Replace(readsFile))
			if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			watch(t, policyPath(t), func(t *testing.T, w *watched) {
				w.looks(3)
				w.saw(t)
				change(t, w.path)
				w.looks(1)
				w.is(t, "read_only")
				w.looks(1)
				w.is(t, "idempotent")
				w.looks(3)
				w.saw(t, "")
			})
		})
	}
}

// TestWatchFollowsLinks: Kubernetes puts a file behind two links, and exchanges the one
// to the directory.
func TestWatchFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"..1": readsFile, "..2": labelsFile} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "policy.yaml"), text)
	}
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("..1", "..data")
	link("..data/policy.yaml", "policy.yaml")
	watch(t, filepath.Join(dir, "policy.yaml"), func(t *testing.T, w *watched) {
		link("..2", "..data_tmp")
		replace(t, filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data"))
		if err := os.RemoveAll(filepath.Join(dir, "..1")); err != nil {
			t.Fatal(err)
		}
		w.looks(2)
		w.is(t, "idempotent")
		w.saw(t, "")
	})
}

// TestWatchKeepsThePolicy on every fault, tells it once, and takes the file again when
// it is well.
func TestWatchKeepsThePolicy(t *testing.T) {
	remove := func(t *testing.T, path string) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, path string)
		want  string
	}{
		"deleted": {remove, "no such file"},
		"invalid": {func(t *testing.T, path string) {
			write(t, path, "version: 1\nrules:\n  - {tool: t, safty: unsafe}\n")
		}, "did you mean safety?"},
		"cut short": {func(t *testing.T, path string) { write(t, path, labelsFile[:len(labelsFile)-8]) }, "policy.yaml:3"},
		"too large": {func(t *testing.T, path string) { write(t, path, "#"+strings.Repeat("x", 5<<20)) }, "larger than 4 MiB"},
		"directory": {func(t *testing.T, path string) {
			remove(t, path)
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "not a regular file"},
		"pipe": {func(t *testing.T, path string) {
			remove(t, path)
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			watch(t, policyPath(t), func(t *testing.T, w *watched) {
				c.spoil(t, w.path)
				w.looks(5)
				w.is(t, "read_only")
				w.saw(t, c.want)
				write(t, w.path+".new", readsFile)
				_ = os.Remove(w.path)
				replace(t, w.path+".new", w.path)
				w.looks(2)
				w.saw(t, "")
				c.spoil(t, w.path)
				w.looks(5)
				w.saw(t, c.want)
				w.is(t, "read_only")
			})
		})
	}
}

// TestWatchWaitsForTheEnd: a file that is still being written is neither taken nor
// reported, though its beginning may be a policy of its own.
func TestWatchWaitsForTheEnd(t *testing.T) {
	watch(t, policyPath(t), func(t *testing.T, w *watched) {
		for _, part := range []string{"", "version: 1\n", labelsFile[:25], labelsFile} {
			write(t, w.path, part)
			w.looks(1)
			w.is(t, "read_only")
		}
		w.saw(t)
		w.looks(1)
		w.is(t, "idempotent")
		w.saw(t, "")
	})
}

// TestWatchTellsDistinctFaults, each once.
func TestWatchTellsDistinctFaults(t *testing.T) {
	watch(t, policyPath(t), func(t *testing.T, w *watched) {
		write(t, w.path, "version: 2\n")
		w.looks(4)
		write(t, w.path, "version: 2\n# by hand\n")
		w.looks(4)
		write(t, w.path, "version: 3\nx: y\n")
		w.looks(4)
		w.saw(t, "version 1 only", `"x" is not a name`)
	})
}

func TestWatchBeginsWithAPolicy(t *testing.T) {
	stack := middleware.New(nil)
	path := policyPath(t)
	if err := stack.WatchPolicy(t.Context(), path+"x", nil); err == nil {
		t.Error("no file, and no error")
	}
	write(t, path, "version: 1\nrules:\n  - {tool: t, safty: unsafe}\n")
	err := stack.WatchPolicy(t.Context(), path, nil)
	if err == nil || !strings.Contains(err.Error(), "policy.yaml:3:15") {
		t.Errorf("error %v", err)
	}
}

// TestWatchEndsWithItsContext, and is silent where nobody listens.
func TestWatchEndsWithItsContext(t *testing.T) {
	path := policyPath(t)
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, unavailable(0))
		defer b.session.Close()
		ctx, cancel := context.WithCancel(t.Context())
		if err := b.stack.WatchPolicy(ctx, path, &middleware.WatchOptions{Interval: time.Minute}); err != nil {
			t.Fatal(err)
		}
		write(t, path, labelsFile)
		time.Sleep(90 * time.Second)
		cancel()
		time.Sleep(time.Hour)
		if _, rec, _ := b.call("t", 0); rec.Safety != "read_only" {
			t.Errorf("the tool is %s", rec.Safety)
		}
	})
}
