package middlewaretest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Baseline is the scenario without faults, which every server begins with.
const Baseline = "baseline"

// TokenPrefix, with a number from 1 on, makes the tokens of the scenario
// auth.token_lifecycle.
const TokenPrefix = "kitchen-token-"

// A Scenario is one way for a whole server to behave, to be chosen with
// [Server.Select].
type Scenario struct {
	Name string
	// Meaning is one line.
	Meaning string
	// Config is a JSON object with every member that the scenario takes, at its
	// default.
	Config string
}

// Scenarios returns all scenarios: first the six of the article that this project
// started from, then those that it names as not registered, then our own.
func Scenarios() []Scenario {
	all := make([]Scenario, 0, len(scenarios))
	for _, s := range scenarios {
		all = append(all, s.Scenario)
	}
	return all
}

// A plan is what a scenario does, in a form that has no state.
type plan struct {
	tool           string // the only tool concerned; empty for all
	statuses       []int  // of the POSTs of a session
	methodStatuses map[string][]int
	fault          *Fault                       // of every call
	edit           func(*Tool)                  // changes the tool that is called
	list           func(t []Tool, n int) []Tool // changes the list after n calls
	changeAfter    int                          // the call after which the list changes
	legacyArgument string                       // what a client without rounds has to send
	hangHandshake  bool
	tokenRequests  int // requests for which a token is valid; 0 for no tokens
}

func (p *plan) concerns(tool string) bool { return p.tool == "" || p.tool == tool }

// settings are the members that a scenario's config may have.
type settings struct {
	Tool        string           `json:"tool"`
	StatusCodes []int            `json:"statusCodes"`
	Statuses    map[string][]int `json:"statuses"`
	Code        int              `json:"code"`
	Message     string           `json:"message"`
	Variant     string           `json:"variant"`
	Fault       string           `json:"fault"`
	Executed    bool             `json:"executed"`
	Reset       bool             `json:"reset"`
	MS          int              `json:"ms"`
	Requests    int              `json:"requests"`
	Tools       int              `json:"tools"`
	After       int              `json:"after"`
	URL         string           `json:"url"`
}

type scenario struct {
	Scenario
	build func(settings, *Options) (plan, error)
}

// buildPlan reads a config over the scenario's defaults. A member that the
// scenario does not have is an error.
func buildPlan(name string, config json.RawMessage, o *Options) (plan, error) {
	i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.Name == name })
	if i < 0 {
		return plan{}, fmt.Errorf("unknown scenario %q", name)
	}
	sc := scenarios[i]
	var set settings
	if err := json.Unmarshal([]byte(sc.Config), &set); err != nil {
		return plan{}, fmt.Errorf("scenario %s: %w", name, err)
	}
	if err := readConfig(config, sc.Config, &set); err != nil {
		return plan{}, fmt.Errorf("scenario %s: config: %w", name, err)
	}
	p, err := sc.build(set, o)
	if err != nil {
		return plan{}, fmt.Errorf("scenario %s: %w", name, err)
	}
	p.tool = set.Tool
	return p, nil
}

func readConfig(config json.RawMessage, defaults string, set *settings) error {
	if len(bytes.TrimSpace(config)) == 0 {
		return nil
	}
	var known, given map[string]json.RawMessage
	_ = json.Unmarshal([]byte(defaults), &known)
	if err := json.Unmarshal(config, &given); err != nil {
		return errors.New("not a JSON object")
	}
	for member := range given {
		if _, ok := known[member]; !ok {
			return fmt.Errorf("unknown member %q; known: %s", member, defaults)
		}
	}
	if _, ok := given["statuses"]; ok {
		set.Statuses = nil // json would merge the maps
	}
	return json.Unmarshal(config, set)
}

func faultPlan(f Fault) (plan, error) { return plan{fault: &f}, nil }

func checkStatuses(all ...int) error {
	for _, code := range all {
		if code < 200 || code > 599 {
			return fmt.Errorf("status %d is not between 200 and 599", code)
		}
	}
	return nil
}

func checkRange(name string, n, least, most int) error {
	if n < least || n > most {
		return fmt.Errorf("%s must be between %d and %d", name, least, most)
	}
	return nil
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// statusSequence counts every POST of the session, so that tools/list can take
// the status that was meant for a call.
func statusSequence(set settings, _ *Options) (plan, error) {
	return plan{statuses: set.StatusCodes}, checkStatuses(set.StatusCodes...)
}

func statusPerMethod(set settings, _ *Options) (plan, error) {
	for method, codes := range set.Statuses {
		if slices.Contains(handshakes, method) {
			return plan{}, fmt.Errorf("%s begins the session, and takes no status", method)
		}
		if err := checkStatuses(codes...); err != nil {
			return plan{}, err
		}
	}
	return plan{methodStatuses: set.Statuses}, nil
}

func connectionClose(set settings, _ *Options) (plan, error) {
	f := Close()
	if set.Reset {
		f = Reset()
	}
	if set.Executed {
		f = f.Executed()
	}
	return faultPlan(f)
}

// payloads are the variants of errors.malformed_payload, by the faults that they
// are.
var payloads = map[string]string{
	"invalid_json": "body-malformed", "wrong_id": "envelope-wrong-id",
	"missing_jsonrpc": "envelope-no-jsonrpc", "duplicate_response": "sse-second-response",
}

func malformedPayload(set settings, _ *Options) (plan, error) {
	name, ok := payloads[set.Variant]
	if !ok {
		return plan{}, fmt.Errorf("unknown variant %q", set.Variant)
	}
	f, _ := FaultNamed(name)
	return faultPlan(f)
}

func catalogueFault(prefix string) func(settings, *Options) (plan, error) {
	return func(set settings, o *Options) (plan, error) {
		f, ok := FaultNamed(set.Fault)
		if !ok || !strings.HasPrefix(f.Name, prefix) {
			return plan{}, fmt.Errorf("unknown fault %q", set.Fault)
		}
		if !f.Applies(o) {
			return plan{}, fmt.Errorf("the fault %q cannot strike on this server", set.Fault)
		}
		return faultPlan(f)
	}
}

func cooperativeDeadline(set settings, _ *Options) (plan, error) {
	f := JSONRPCError(-32001, "the server's own deadline passed").Delayed(milliseconds(set.MS))
	f.Name = "server-deadline"
	p, _ := faultPlan(f)
	return p, checkRange("ms", set.MS, 0, 600_000)
}

func lateResponse(set settings, _ *Options) (plan, error) {
	p, _ := faultPlan(Late(milliseconds(set.MS)))
	return p, checkRange("ms", set.MS, 0, 600_000)
}

func approval(set settings, _ *Options) (plan, error) {
	return plan{edit: func(t *Tool) { t.Ask = set.Message }}, nil
}

// decline differs from approval in what a refusal comes to: a plain result.
func decline(set settings, _ *Options) (plan, error) {
	return plan{edit: func(t *Tool) { t.Ask, t.RefusalIsFine = set.Message, true }}, nil
}

func urlMode(set settings, _ *Options) (plan, error) {
	return plan{edit: func(t *Tool) { t.Ask, t.AskURL = set.Message, set.URL }}, nil
}

// sdkV2 is a stateless host: it asks by rounds where the version has them, and
// where it has not it does not ask, but says with which argument to call again.
func sdkV2(set settings, o *Options) (plan, error) {
	if o.Sessions {
		return plan{}, errors.New("the host is stateless; use a server without sessions")
	}
	const field = "closeReason"
	return plan{legacyArgument: field, edit: func(t *Tool) {
		if o.stateless() {
			t.Ask, t.AskField = set.Message, field
		}
	}}, nil
}

func emptyCatalog(settings, *Options) (plan, error) {
	return plan{list: func([]Tool, int) []Tool { return nil }}, nil
}

func largeCatalog(set settings, _ *Options) (plan, error) {
	return plan{list: func(tools []Tool, _ int) []Tool {
		for i := range set.Tools {
			tools = append(tools, Tool{Name: "tool_" + strconv.Itoa(i+1), Description: "One of many."})
		}
		return tools
	}}, checkRange("tools", set.Tools, 0, 100_000)
}

func changingCatalog(set settings, _ *Options) (plan, error) {
	return plan{changeAfter: set.After, list: func(tools []Tool, calls int) []Tool {
		if calls >= set.After {
			tools = append(tools, Tool{Name: "added_later", Description: "Was not there before."})
		}
		return tools
	}}, checkRange("after", set.After, 1, 1_000_000)
}

func tokenLifecycle(set settings, _ *Options) (plan, error) {
	return plan{tokenRequests: set.Requests}, checkRange("requests", set.Requests, 1, 1_000_000)
}
