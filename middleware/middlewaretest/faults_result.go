package middlewaretest

import (
	"net/http"
	"time"
)

// CatalogueResultLimit is the limit of a result, in bytes, for which the faults
// with [NeedsLimit] are made.
const CatalogueResultLimit = 1 << 20

// ResultBody is a JSON-RPC response with this template as its result.
func ResultBody(name, result string) Fault {
	return Fault{Name: name, Status: 200, Body: `{"jsonrpc":"2.0","id":%id%,"result":` + result + `}`, Execute: Before}
}

// ToolError is a result with isError.
func ToolError(text string) Fault {
	return ResultBody("tool-error", `{"content":[{"type":"text","text":`+quote(text)+`}],"isError":true}`)
}

// TooLarge is a result whose text has so many bytes.
func TooLarge(size int) Fault {
	f := ResultBody("too-large", `{"content":[{"type":"text","text":"%fill%"}]}`)
	f.Size = size
	return f
}

// resultFaults are the results of the catalogue that are none, or nearly none.
func resultFaults() []Fault {
	bad := func(name, result string) Fault {
		return ResultBody("result-"+name, result).expect("INVALID_TOOL_RESULT", "unknown")
	}
	good := func(name, result string) Fault {
		return ResultBody("result-"+name, result).expect("TOOL_SUCCESS", "answered")
	}
	failed := ToolError("the tool failed").expect("TOOL_ERROR", "answered")
	unknownType := bad("type-unknown", `{"resultType":"hologram","content":[]}`)
	unknownType.Legacy = &Expectation{"TOOL_SUCCESS", "answered"}
	unknownType.Rests = "2025-11-25 does not define resultType."
	large := TooLarge(CatalogueResultLimit+1).expect("RESULT_TOO_LARGE", "unknown")
	large.Needs = NeedsLimit
	endless := Fault{Name: "too-large-endless", Status: 200, Body: "%fill%", Size: 64 << 10, Repeat: time.Millisecond, Execute: Before}.
		expect("RESULT_TOO_LARGE", "unknown")
	endless.Needs = NeedsLimit
	surprise := Fault{Name: "session-uncalled-for", Header: http.Header{"Mcp-Session-Id": {"surprise"}}, Execute: Before, Needs: NeedsStateless}.
		expect("TOOL_SUCCESS", "answered").rests("2026-07-28 has no sessions.")
	session := Fault{Name: "session-changed", ChangeSession: true, Execute: Before, Needs: NeedsSession}.expect("TOOL_SUCCESS", "answered")
	return []Fault{
		failed,
		bad("content-text", `{"content":"done"}`),
		bad("content-missing", `{}`),
		bad("content-null", `{"content":null}`),
		bad("content-object", `{"content":{"type":"text","text":"done"}}`),
		bad("content-of-text", `{"content":["done"]}`),
		bad("content-type-unknown", `{"content":[{"type":"hologram","data":"x"}]}`),
		bad("is-error-text", `{"content":[],"isError":"false"}`),
		bad("is-error-null", `{"content":[],"isError":null}`),
		bad("null", `null`),
		bad("array", `[]`),
		bad("text", `"done"`),
		unknownType,
		bad("type-number", `{"resultType":1,"content":[]}`),
		bad("meta-text", `{"_meta":"m","content":[]}`),
		good("empty", `{"content":[]}`),
		good("is-error-false", `{"content":[],"isError":false}`),
		good("structured-scalar", `{"content":[],"structuredContent":7}`),
		good("unknown-member", `{"content":[],"flavour":"sour"}`),
		large,
		endless,
		session,
		surprise,
	}
}
