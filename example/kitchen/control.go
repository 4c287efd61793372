package main

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

// maxControl bounds the body of a request to the control endpoints, in bytes.
const maxControl = 1 << 20

// routes serves MCP and, beside it, the kitchen's own endpoints.
func routes(s *middlewaretest.Server) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Handler())
	mux.Handle("/mcp/", s.Handler())
	mux.HandleFunc("GET /scenario", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, state(s)) })
	mux.HandleFunc("PUT /scenario", func(w http.ResponseWriter, r *http.Request) { put(s, w, r) })
	mux.HandleFunc("GET /ledger", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, ledger(s)) })
	mux.HandleFunc("DELETE /ledger", func(w http.ResponseWriter, _ *http.Request) {
		s.Reset()
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

// selection is the body of PUT /scenario, and a part of GET's.
type selection struct {
	Name   string          `json:"name"`
	Config json.RawMessage `json:"config,omitempty"`
}

func put(s *middlewaretest.Server, w http.ResponseWriter, r *http.Request) {
	var sel selection
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxControl))
	if err == nil {
		err = json.Unmarshal(body, &sel)
	}
	if err == nil {
		err = s.Select(sel.Name, sel.Config)
	}
	if err != nil {
		reply(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	reply(w, http.StatusOK, state(s))
}

func state(s *middlewaretest.Server) any {
	type scenario struct {
		Name    string          `json:"name"`
		Meaning string          `json:"meaning"`
		Config  json.RawMessage `json:"config"`
	}
	var all []scenario
	for _, sc := range middlewaretest.Scenarios() {
		all = append(all, scenario{sc.Name, sc.Meaning, json.RawMessage(sc.Config)})
	}
	name, config := s.Selected()
	return struct {
		selection
		Scenarios []scenario `json:"scenarios"`
	}{selection{name, config}, all}
}

func ledger(s *middlewaretest.Server) any {
	return map[string]any{"counts": s.Counts(), "tools": s.ByTool(), "entries": s.Entries()}
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(v)
}
