package otelobserve_test

import (
	"testing"

	"go.opentelemetry.io/otel"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {})) // exporters fail here on purpose
	goleak.VerifyTestMain(m)
}
