package observe

import "bytes"

// The members that are judged, by object. Keys are compared with these names after
// their escapes were decoded.
var (
	envelopeNames = []string{memberVersion: "jsonrpc", memberID: "id", memberMethod: "method", memberResult: "result", memberError: "error"}
	errorNames    = []string{memberCode: "code", memberMessage: "message", memberData: "data"}
	resultNames   = []string{
		memberContent: "content", memberIsError: "isError", memberResultType: "resultType",
		memberInputRequests: "inputRequests", memberRequestState: "requestState", memberStructured: "structuredContent",
	}
)

const (
	memberVersion = iota
	memberID
	memberMethod
	memberResult
	memberError
)

const (
	memberCode = iota
	memberMessage
	memberData
)

const (
	memberContent = iota
	memberIsError
	memberResultType
	memberInputRequests
	memberRequestState
	memberStructured
)

// longestName bounds a key that can be one of the names: the longest, with every
// character written as an escape.
const longestName = len("structuredContent") * len(`\u0000`)

// facts is what one pass over a JSON-RPC message finds. The order of members is
// the server's, so nothing is judged before the end.
type facts struct {
	scanner
	inside   bool // the members of the result are judged
	isObject bool
	envelope members
	failure  members // of the error object
	result   members // only where inside
	// inputRequests counts the members of result.inputRequests.
	inputRequests int
	// looseRequest: one of them is no request that a client can be given.
	looseRequest bool
	// looseContent: a member of result.content is not an object.
	looseContent bool
}

// gather scans data, whole.
func (f *facts) gather(data []byte, inside bool) {
	f.data, f.inside = data, inside
	f.document(f.message)
}

func (f *facts) message(i int) int {
	if f.at(i) != '{' {
		return f.value(i, 0)
	}
	f.isObject = true
	return f.object(i, 0, f.envelopeMember)
}

func (f *facts) envelopeMember(key []byte, i int) int {
	name, end := f.envelope.find(envelopeNames, key), 0
	switch opens := f.at(i) == '{'; {
	case opens && name == memberError:
		end = f.object(i, 1, f.errorMember)
	case opens && name == memberResult && f.inside:
		end = f.object(i, 1, f.resultMember)
	default:
		end = f.value(i, 1)
	}
	return f.keep(&f.envelope, name, i, end)
}

func (f *facts) errorMember(key []byte, i int) int {
	name := f.failure.find(errorNames, key)
	return f.keep(&f.failure, name, i, f.value(i, 2))
}

func (f *facts) resultMember(key []byte, i int) int {
	name, end := f.result.find(resultNames, key), 0
	switch c := f.at(i); {
	case c == '[' && name == memberContent:
		end = f.array(i, 2, f.contentElement)
	case c == '{' && name == memberInputRequests:
		end = f.object(i, 2, f.inputRequest)
	default:
		end = f.value(i, 2)
	}
	return f.keep(&f.result, name, i, end)
}

func (f *facts) contentElement(i int) int {
	if f.at(i) != '{' {
		f.looseContent = true
	}
	return f.value(i, 3)
}

func (f *facts) inputRequest(_ []byte, i int) int {
	f.inputRequests++
	end := f.value(i, 3)
	if end >= 0 && !(isRequest(f.data[i:end]) && isBearable(f.data[i:end])) {
		f.looseRequest = true
	}
	return end
}

// keep stores the value between start and end under its name.
func (f *facts) keep(m *members, name, start, end int) int {
	if name >= 0 && end >= 0 {
		m.found[name] = f.data[start:end:end]
	}
	return end
}

// members are the judged members of one object.
type members struct {
	found [6]token
	// ambiguous holds a bit for each name that occurs twice, or in another case:
	// readers that take the first, the last, or any case see different objects.
	ambiguous uint8
	// unknown: there are members of other names.
	unknown bool
}

// find returns the index of the name that key is, or -1.
func (m *members) find(names []string, key []byte) int {
	key = plainKey(key)
	for i, name := range names {
		if string(key) != name {
			continue
		}
		if m.found[i] == nil {
			return i
		}
		m.ambiguous |= 1 << i
		return -1
	}
	for i, name := range names {
		if bytes.EqualFold(key, []byte(name)) {
			m.ambiguous |= 1 << i
			return -1
		}
	}
	m.unknown = true
	return -1
}

// has reports whether the member is there, once or more, in whatever case.
func (m *members) has(name int) bool { return m.found[name] != nil || m.isAmbiguous(name) }

func (m *members) isAmbiguous(name int) bool { return m.ambiguous&(1<<name) != 0 }

// plainKey decodes a key's escapes, if it can still be one of the names.
func plainKey(key []byte) []byte {
	if len(key) > longestName || bytes.IndexByte(key, '\\') < 0 {
		return key
	}
	return []byte(decodeText(key))
}
