package middleware

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/surecall/surecall/observe"
)

// syntheticCode marks the JSON-RPC errors that the Transport puts in the place of
// an answer it cannot return as a Go error: on a stream, and for 401 and 403. It
// lies outside the ranges that JSON-RPC and MCP give to servers.
const syntheticCode = 78_732_255

// syntheticNonce tells our errors from those of a server that uses the code.
var syntheticNonce = rand.Text()

// syntheticData is the data member of such an error.
type syntheticData struct {
	Nonce    string           `json:"nonce"`
	Outcome  observe.Outcome  `json:"outcome,omitempty"`
	Delivery observe.Delivery `json:"delivery,omitempty"`
	Reason   string           `json:"reason,omitempty"`
	Status   int              `json:"status,omitempty"`
	Tool     string           `json:"tool,omitempty"`
	Safety   string           `json:"safety,omitempty"`
}

// rejection is a synthetic error response with a text alone.
func rejection(id, text string) []byte {
	return errorMessage(id, &observe.RPCError{Code: syntheticCode, Message: "surecall: " + text})
}

// synthetic is a synthetic error response that carries what e says.
func synthetic(id string, e *observe.Error) []byte {
	data, _ := json.Marshal(syntheticData{
		Nonce: syntheticNonce, Outcome: e.Outcome, Delivery: e.Delivery, Reason: e.Reason,
		Status: e.Status, Tool: e.Tool, Safety: e.Safety,
	})
	return errorMessage(id, &observe.RPCError{Code: syntheticCode, Message: e.Error(), Data: data})
}

// ErrorFrom finds the error of this library in an error that the SDK returned, for
// hosts that use the [Transport] without the client middlewares: it is in the
// chain where RoundTrip failed, and inside a JSON-RPC error where a stream did.
func ErrorFrom(err error) (*observe.Error, bool) {
	var own *observe.Error
	if errors.As(err, &own) {
		return own, true
	}
	var rpc *jsonrpc.Error
	if !errors.As(err, &rpc) || rpc.Code != syntheticCode {
		return nil, false
	}
	var d syntheticData
	if json.Unmarshal(rpc.Data, &d) != nil || d.Nonce != syntheticNonce {
		return nil, false
	}
	return observe.NewError(observe.Error{
		Outcome: d.Outcome, Delivery: d.Delivery, Reason: d.Reason, Status: d.Status,
		Tool: d.Tool, Safety: d.Safety,
	}, fmt.Errorf("stream: %s", d.Reason), nil), true
}
