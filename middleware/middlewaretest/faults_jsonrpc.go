package middlewaretest

import (
	"fmt"
	"strconv"
	"strings"
)

// JSONRPCError is a JSON-RPC error with HTTP 200. Its Expectation is not set.
func JSONRPCError(code int, message string) Fault {
	return Fault{
		Name: "jsonrpc-" + strings.TrimPrefix(strconv.Itoa(code), "-"), Status: 200,
		Body: fmt.Sprintf(`{"jsonrpc":"2.0","id":%%id%%,"error":{"code":%d,"message":%s}}`, code, quote(message)),
	}
}

// envelope is a fault of the JSON-RPC response around the tool's result.
func envelope(name, body string) Fault {
	return Fault{Name: "envelope-" + name, Status: 200, Body: body, Execute: Before}.expect("INVALID_ENVELOPE", "unknown")
}

// errorFaults are the JSON-RPC errors of the catalogue.
func errorFaults() []Fault {
	var all []Fault
	for _, code := range []int{-32700, -32600, -32601, -32020, -32021, -32022} {
		f := JSONRPCError(code, "refused").expect("JSONRPC_ERROR", "refused")
		f.Rests = "The code says that the request was not executed."
		all = append(all, f)
	}
	for _, code := range []int{-32602, -32603, -32000, -32003, -32004, -32005, 1234} {
		f := JSONRPCError(code, "date must be ISO").expect("JSONRPC_ERROR", "answered")
		all = append(all, f, f.Executed())
	}
	float := JSONRPCError(-32602, "").expect("JSONRPC_ERROR", "answered")
	float.Name, float.Body = "jsonrpc-code-point-zero", `{"jsonrpc":"2.0","id":%id%,"error":{"code":-32602.0,"message":"m"}}`
	data := JSONRPCError(-32602, "").expect("JSONRPC_ERROR", "answered")
	data.Name, data.Body = "jsonrpc-with-data", `{"jsonrpc":"2.0","id":%id%,"error":{"code":-32602,"message":"m","data":{"field":"date","token":"secret"}}}`
	return append(all, float, data)
}

// envelopeFaults are the malformed responses of the catalogue.
func envelopeFaults() []Fault {
	return []Fault{
		envelope("wrong-id", `{"jsonrpc":"2.0","id":%nextid%,"result":%result%}`),
		envelope("text-id", `{"jsonrpc":"2.0","id":%textid%,"result":%result%}`),
		envelope("half-id", `{"jsonrpc":"2.0","id":%halfid%,"result":%result%}`),
		envelope("null-id", `{"jsonrpc":"2.0","id":null,"result":%result%}`),
		envelope("no-id", `{"jsonrpc":"2.0","result":%result%}`),
		envelope("null-id-error", `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"m"}}`),
		envelope("no-jsonrpc", `{"id":%id%,"result":%result%}`),
		envelope("jsonrpc-1.0", `{"jsonrpc":"1.0","id":%id%,"result":%result%}`),
		envelope("result-and-error", `{"jsonrpc":"2.0","id":%id%,"result":%result%,"error":{"code":-32603,"message":"m"}}`),
		envelope("neither", `{"jsonrpc":"2.0","id":%id%}`),
		envelope("null-error", `{"jsonrpc":"2.0","id":%id%,"result":%result%,"error":null}`).expect("TOOL_SUCCESS", "answered"),
		envelope("only-null-error", `{"jsonrpc":"2.0","id":%id%,"error":null}`),
		envelope("error-text", `{"jsonrpc":"2.0","id":%id%,"error":"failed"}`),
		envelope("code-text", `{"jsonrpc":"2.0","id":%id%,"error":{"code":"-32603","message":"m"}}`),
		envelope("code-fraction", `{"jsonrpc":"2.0","id":%id%,"error":{"code":-32603.5,"message":"m"}}`),
		envelope("no-message", `{"jsonrpc":"2.0","id":%id%,"error":{"code":-32603}}`),
		envelope("method", `{"jsonrpc":"2.0","id":%id%,"method":"tools/call","result":%result%}`),
		envelope("two-results", `{"jsonrpc":"2.0","id":%id%,"result":{"content":[],"isError":true},"result":%result%}`),
		envelope("two-errors", `{"jsonrpc":"2.0","id":%id%,"error":{"code":-32603,"message":"m"},"error":{"code":1,"message":"n"}}`),
		envelope("two-ids", `{"jsonrpc":"2.0","id":%nextid%,"id":%id%,"result":%result%}`),
		envelope("wrong-case", `{"jsonrpc":"2.0","id":%id%,"Result":%result%}`),
		envelope("array", `[%response%]`),
		envelope("empty-array", `[]`),
		envelope("scalar", `"done"`),
		envelope("null", `null`),
		envelope("notification", `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"m"}}`),
		envelope("request", `{"jsonrpc":"2.0","id":%id%,"method":"ping"}`),
	}
}
