package idempotency_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets the properties be tried often enough that the model comes to every
// outcome; -rapid.checks on the command line overrides it.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "1000"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
