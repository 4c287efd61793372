package idempotency

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// served is a server's answer as it is stored: one of the two.
type served struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  *jsonrpc.Error  `json:"error,omitempty"`
}

// settlement says what became of an execution.
func settlement(ctx context.Context, res mcp.Result, err error) Settlement {
	result, _ := res.(*mcp.CallToolResult)
	isError := err != nil || result != nil && result.IsError
	switch {
	case err == nil && result != nil && result.NeedsInput():
		return Settlement{State: Failed}
	case isError && ctx.Err() != nil:
		// It may have failed because it was cancelled, halfway.
		return Settlement{State: Unknown}
	}
	return Settlement{State: Completed, Answer: stored(result, err), IsError: isError}
}

// stored is an answer to be stored, or nothing where it has no JSON form: then the
// caller does not get it either.
func stored(result *mcp.CallToolResult, err error) []byte {
	var s served
	switch {
	case err != nil:
		s.Error = wireError(err)
	case result != nil:
		s.Result, err = json.Marshal(result)
		if err != nil {
			return nil
		}
	default:
		return nil
	}
	answer, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return answer
}

// wireError is what the SDK (v1.8.0) makes of a handler's error: the message of the
// outermost, the code of the first that has one.
func wireError(err error) *jsonrpc.Error {
	var inner *jsonrpc.Error
	switch {
	case !errors.As(err, &inner):
		return &jsonrpc.Error{Message: err.Error()}
	case error(inner) == err:
		return inner
	}
	return &jsonrpc.Error{Code: inner.Code, Message: err.Error()}
}

// replayed is the stored answer of an earlier call, marked as such.
func replayed(t *Ticket) (mcp.Result, error) {
	var s served
	if err := json.Unmarshal(t.Answer().Body, &s); err != nil {
		return nil, unreadable(err)
	}
	if s.Error != nil {
		return nil, s.Error
	}
	var result mcp.CallToolResult
	// The SDK would read numbers as doubles.
	var exact struct {
		StructuredContent json.RawMessage `json:"structuredContent"`
	}
	if err := errors.Join(json.Unmarshal(s.Result, &result), json.Unmarshal(s.Result, &exact)); err != nil {
		return nil, unreadable(err)
	}
	if exact.StructuredContent != nil {
		result.StructuredContent = exact.StructuredContent
	}
	if result.Meta == nil {
		result.Meta = mcp.Meta{}
	}
	result.Meta[MetaReplay] = t.Since().UTC().Format(time.RFC3339Nano)
	return &result, nil
}

func unreadable(err error) error {
	return &jsonrpc.Error{
		Code:    jsonrpc.CodeInternalError,
		Message: fmt.Sprintf("the stored answer of the earlier call with this key cannot be read: %v; it is not executed again", err),
	}
}

// refusal is the protocol error for a call that is not executed.
func refusal(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	code := int64(jsonrpc.CodeInternalError)
	if e.Kind == KindMismatch {
		code = jsonrpc.CodeInvalidParams
	}
	return &jsonrpc.Error{
		Code: code, Message: refusals[e.Kind],
		Data: json.RawMessage(`{"idempotency":"` + string(e.Kind) + `"}`),
	}
}

// refusals are the words for clients. They say nothing of the store.
var refusals = map[Kind]string{
	KindUnknown:  "an earlier call with this idempotency key was interrupted: it may have taken effect, and is not executed again",
	KindMismatch: "this idempotency key belongs to an earlier call of another tool or with other arguments",
	KindNotKept:  "an earlier call with this idempotency key was executed and answered, but its answer was not kept; it is not executed again",
	KindRunning:  "an earlier call with this idempotency key is still running",
	KindStore:    "not executed: the earlier idempotency keys cannot be looked up",
}

func invalid(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}
