package middlewaretest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
)

// legacyVersions are the versions that a 2025-11-25 server agrees to.
var legacyVersions = map[string]bool{"2024-11-05": true, "2025-03-26": true, "2025-06-18": true, Version20251125: true}

// pageSize is the number of tools in one answer to tools/list.
const pageSize = 100

// A Handshake is what the server says about itself.
type Handshake struct {
	// Name and Version of the server; empty means "middlewaretest" and "1".
	Name, Version string
	// ProtocolVersion is what initialize answers (2025-11-25); empty means the
	// version that the client asks for, if the server knows it.
	ProtocolVersion string
	// Capabilities, if not nil, are announced in place of the honest ones.
	Capabilities map[string]any
}

// SetHandshake changes what the server says about itself from the next handshake
// on, as a server does that was replaced.
func (s *Server) SetHandshake(h Handshake) { s.handshake.Store(&h) }

func (h *Handshake) serverInfo() map[string]any {
	return map[string]any{"name": cmp.Or(h.Name, "middlewaretest"), "version": cmp.Or(h.Version, "1")}
}

// discover answers server/discover. A 2025-11-25 server does not know the method,
// and so a client falls back to initialize.
func (x *exchange) discover() {
	if !x.s.opts.stateless() {
		x.unknownMethod()
		return
	}
	if v := x.p.metaString(metaVersion); v != "" && v != Version20260728 {
		x.unsupported(v)
		return
	}
	x.hangHandshake()
	x.result(x.cacheable(map[string]any{
		"supportedVersions": []string{Version20260728},
		"capabilities":      x.capabilities(),
		"_meta":             map[string]any{metaServerInfo: x.s.handshake.Load().serverInfo()},
	}))
}

// initialize answers initialize, and opens a session where there are sessions.
func (x *exchange) initialize() {
	if x.s.opts.stateless() {
		x.unsupported(x.p.ProtocolVersion)
		return
	}
	h := x.s.handshake.Load()
	version := Version20251125
	if legacyVersions[x.p.ProtocolVersion] {
		version = x.p.ProtocolVersion
	}
	x.hangHandshake()
	x.openSession()
	x.result(mustJSON(map[string]any{
		"protocolVersion": cmp.Or(h.ProtocolVersion, version), "capabilities": x.capabilities(), "serverInfo": h.serverInfo(),
	}))
}

// hangHandshake keeps the client waiting if the scenario wants that.
func (x *exchange) hangHandshake() {
	if x.play.plan.hangHandshake {
		x.finish(EndSilent)
	}
}

func (x *exchange) unsupported(version string) {
	data := mustJSON(map[string]any{"supported": []string{Version20260728}, "requested": version})
	x.refuse(http.StatusBadRequest, codeUnsupportedVersion, "unsupported protocol version", data)
}

// capabilities announces changes of the tools where there is a stream for them.
func (x *exchange) capabilities() map[string]any {
	if c := x.s.handshake.Load().Capabilities; c != nil {
		return c
	}
	tools := map[string]any{}
	if x.s.opts.stateless() || x.s.opts.StandaloneSSE {
		tools["listChanged"] = true
	}
	return map[string]any{"tools": tools}
}

// list answers tools/list, page by page.
func (x *exchange) list() {
	var at struct{ Cursor string }
	_ = json.Unmarshal(orNull(x.msg.Params), &at)
	from, _ := strconv.Atoi(at.Cursor)
	tools := x.stageTools()
	from = min(max(from, 0), len(tools))
	to := min(from+pageSize, len(tools))
	listed := []any{}
	for _, t := range tools[from:to] {
		listed = append(listed, t.describe())
	}
	result := map[string]any{"tools": listed}
	if to < len(tools) {
		result["nextCursor"] = strconv.Itoa(to)
	}
	x.result(x.cacheable(result))
}

// cacheable completes a result that clients may keep for a time.
func (x *exchange) cacheable(result map[string]any) json.RawMessage {
	if x.s.opts.stateless() {
		result["ttlMs"] = x.s.opts.ListTTL.Milliseconds()
		result["cacheScope"] = "private"
	}
	return x.complete(result)
}
