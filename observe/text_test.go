package observe_test

import (
	"strings"
	"testing"

	"github.com/surecall/surecall/observe"
)

// TestTextOfHealingRoundsAndLooks: what happened within an attempt has words too, over
// HTTP and without.
func TestTextOfHealingRoundsAndLooks(t *testing.T) {
	r := &observe.Record{
		Tool: "pay", Endpoint: "http://shop.test/mcp", Outcome: observe.ToolSuccess, Layer: observe.LayerApplication, Delivery: observe.Answered,
		PostCount: 3, HTTPStatuses: []int{404, 200, 200}, Healed: true, Safety: "keyed", Rule: "payments",
		Deviations: []observe.Deviation{observe.DeviationStrayLine},
		Ledger:     &observe.LedgerRecord{Step: observe.LedgerSent, Reconciled: []observe.Look{{Finding: "cannot_tell", Error: "GET /orders: token=abcdefgh12345678", DurationMs: 7}}},
		Attempts: []observe.Attempt{
			{Outcome: observe.SessionLost, Delivery: observe.Refused, HTTPStatus: 404, Reconciled: "did_not_happen", PostCount: 1, Posts: []observe.Sent{
				{Outcome: observe.SessionLost, Delivery: observe.Refused, Status: 404, Healed: true},
			}},
			{Outcome: observe.ToolSuccess, Delivery: observe.Answered, HTTPStatus: 200, PostCount: 2, Posts: []observe.Sent{
				{Round: 1, Outcome: observe.InputRequired, Delivery: observe.Answered, Status: 200, Waits: []observe.Wait{{For: observe.WaitSession, Ms: 20}}},
				{Round: 2, Outcome: observe.ToolSuccess, Delivery: observe.Answered, Status: 200, Waits: []observe.Wait{{For: observe.WaitPutOff, Ms: 200}, {For: observe.WaitGate, Ms: 100}}},
			}},
		},
	}
	text := strings.Join(strings.Fields(r.Text()), " ")
	for _, want := range []string{
		"sent 3 POSTs in 2 attempts",
		"no. 1 SESSION_LOST 404, refused, in 0 ms; somebody looked: it did not happen",
		"POST HTTP 200, INPUT_REQUIRED, answered, in 0 ms, after a wait of 20 ms for a new session",
		"POST HTTP 200, TOOL_SUCCESS, answered, round 2, in 0 ms, after a wait of 300 ms for the server, which put it off and the gate",
		"looked cannot tell, in 7 ms: GET /orders: token=[redacted]",
		"noted stray line; the lost session was renewed",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not say %q:\n%s", want, r.Text())
		}
	}
	r.Endpoint, r.PostCount, r.HTTPStatuses = "", 3, nil
	if text := r.Text(); strings.Contains(text, "POST") {
		t.Errorf("the text speaks of POSTs over stdio:\n%s", text)
	}
}
