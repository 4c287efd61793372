package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// behaviour, in the environment, makes this test program a referee, and says what it
// finds of the wrapped client.
const behaviour = "SURECALL_TEST_REFEREE"

func TestMain(m *testing.M) {
	if how := os.Getenv(behaviour); how != "" {
		pretend(how, os.Args[1:])
		return
	}
	goleak.VerifyTestMain(m)
}

// pretend does what the referee does, as far as this program looks.
func pretend(how string, args []string) {
	if args[0] == "list" {
		fmt.Println("Client scenarios (test against a client):")
		for _, name := range wanted {
			if how != "lacks "+name {
				fmt.Printf("  - %s [2025-11-25]\n", name)
			}
		}
		return
	}
	flags := flag.NewFlagSet("referee", flag.PanicOnError)
	command, scenario, dir := flags.String("command", "", ""), flags.String("scenario", "", ""), flags.String("o", "", "")
	_ = flags.Parse(args[1:])
	checks := []map[string]any{
		{"id": "a", "description": "looks at a", "status": "SUCCESS", "timestamp": *command},
		{"id": "b", "description": "saw b", "status": "INFO"},
	}
	told, wrapped, exit := "told", *command == "./client", 0
	switch {
	case how == "checks nothing":
		checks = checks[1:]
	case !wrapped || *scenario != "sse-retry":
	case how == "fails":
		checks[0]["status"] = "FAILURE"
	case how == "sees more":
		checks = append(checks, checks[1])
	case how == "sees another order":
		checks[0], checks[1] = checks[1], checks[0]
	case how == "tells otherwise":
		told = "something else"
	case how == "is not content":
		exit = 1
	case how == "writes nothing":
		os.Exit(1)
	}
	results := filepath.Join(*dir, *scenario+"-now")
	content, _ := json.Marshal(checks)
	_ = os.Mkdir(results, 0o700)
	_ = os.WriteFile(filepath.Join(results, "checks.json"), content, 0o600)
	_ = os.WriteFile(filepath.Join(results, "stdout.txt"), []byte(told), 0o600)
	os.Exit(exit)
}

func TestCompareAll(t *testing.T) {
	for how, want := range map[string]string{
		"finds no difference": "",
		"sees another order":  "",
		"fails":               "sse-retry: for the bare client alone: SUCCESS a: looks at a\nfor the wrapped client alone: FAILURE a: looks at a",
		"sees more":           "sse-retry: for the wrapped client alone: INFO b: saw b",
		"tells otherwise":     "sse-retry: the host was told\n  told\nby the bare client, and by the wrapped one\n  something else",
		"is not content":      "sse-retry: the referee ended with status 0 for the bare client, 1 for the wrapped one",
		"writes nothing":      "sse-retry: 0 results of one run",
		"checks nothing":      "initialize: nothing was checked",
		"lacks tools_call":    "THIS REFEREE HAS NO SCENARIO tools_call",
	} {
		t.Run(how, func(t *testing.T) {
			t.Setenv(behaviour, how)
			t.Setenv("GORACE", "atexit_sleep_ms=0") // or each referee takes a second to end
			program, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			ref := &referee{command: []string{program}, client: filepath.Join(t.TempDir(), "client")}
			var out bytes.Buffer
			err = compareAll(t.Context(), ref, &out)
			if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%v\nwant %s", err, want)
			}
			if (err == nil) != strings.Contains(out.String(), "All 4 scenarios came to the same.") {
				t.Errorf("said %s", &out)
			}
		})
	}
}

// Both must have been built and installed.
func TestNotInstalled(t *testing.T) {
	for _, args := range [][]string{
		{}, {"-client", "no-such-file"}, {"-client", os.Args[0], "-referee", t.TempDir()}, {"-wrong"},
	} {
		var out, errs bytes.Buffer
		if status := run(t.Context(), args, &out, &errs); status != 2 || errs.Len() == 0 {
			t.Errorf("%q: status %d: %s", args, status, &errs)
		}
	}
}
