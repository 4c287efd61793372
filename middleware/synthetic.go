package middleware

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

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
	Nonce      string            `json:"nonce"`
	Outcome    observe.Outcome   `json:"outcome"`
	Delivery   observe.Delivery  `json:"delivery"`
	Reason     string            `json:"reason"`
	Status     int               `json:"status"`
	Tool       string            `json:"tool"`
	Server     string            `json:"server"`
	Safety     string            `json:"safety"`
	RPC        *observe.RPCError `json:"rpc"`
	RetryAfter time.Duration     `json:"retryAfter"`
	Location   string            `json:"location"`
	Healed     bool              `json:"healed"`
	RepeatSafe bool              `json:"repeatSafe"`
}

func newSyntheticData(e *observe.Error) syntheticData {
	rpc := e.RPC
	if rpc != nil { // the data travels without the Redactor
		rpc = &observe.RPCError{Code: rpc.Code, Message: e.Redactor.Text(rpc.Message, recordText), Data: rpc.Data}
	}
	return syntheticData{
		syntheticNonce, e.Outcome, e.Delivery, e.Reason, e.Status, e.Tool, e.Server,
		e.Safety, rpc, e.RetryAfter, e.Location, e.Healed, e.RepeatSafe,
	}
}

func (d *syntheticData) error() *observe.Error {
	return observe.NewError(observe.Error{
		Outcome: d.Outcome, Delivery: d.Delivery, Reason: d.Reason, Status: d.Status,
		Tool: d.Tool, Server: d.Server, Safety: d.Safety, RPC: d.RPC,
		RetryAfter: d.RetryAfter, Location: d.Location, Healed: d.Healed, RepeatSafe: d.RepeatSafe,
	}, errors.New(d.Reason), nil)
}

// rejection is a synthetic error response with a text alone.
func rejection(id, text string) []byte {
	return errorMessage(id, &observe.RPCError{Code: syntheticCode, Message: "surecall: " + text})
}

// synthetic is a synthetic error response that carries what e says.
func synthetic(id string, e *observe.Error) []byte {
	data, err := json.Marshal(newSyntheticData(e))
	if err != nil {
		return rejection(id, e.Reason)
	}
	return errorMessage(id, &observe.RPCError{Code: syntheticCode, Message: e.Error(), Data: data})
}

// ErrorFrom finds the error of this library in an error that the SDK returned, for
// hosts that use the [Transport] without the client middlewares: it is in the
// chain where RoundTrip failed, and inside a JSON-RPC error where a stream did, and
// for 401 and 403. What only the SDK finds wrong, such as a result that does not
// decode or rounds without end, is an error of the SDK's own: only Attempt judges
// that.
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
	return d.error(), true
}
