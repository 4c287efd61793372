package observe_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/surecall/surecall/observe"
)

// TestEmptyRecord: a member that has nothing to say is there all the same, but for
// some within others that rarely have.
func TestEmptyRecord(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{observe.Record{}, `{"schema":"","time":"0001-01-01T00:00:00Z","client":"","server":"","endpoint":"","scenario":"",` +
			`"protocolVersion":"","method":"","tool":"","safety":"","rule":"","outcome":"","layer":"","delivery":"","reason":"",` +
			`"postCount":0,"httpStatuses":null,"contentTypes":null,` +
			`"jsonrpc":{"id":null,"errorCode":null,"errorMessage":"","errorData":""},` +
			`"resultType":null,"isError":null,"sse":null,"retryOrigin":"","retryAfterMs":null,"location":"",` +
			`"decision":{"action":"","reason":"","rule":"","waitMs":0},"would":null,"attempts":null,"healed":false,"breaker":"","limiter":null,"idempotencyKey":"","ledger":null,` +
			`"deviations":null,"excerpt":"","arguments":null,"result":null,"durationMs":0,"modelText":""}`},
		{observe.LedgerRecord{}, `{"step":""}`},
		{observe.LedgerRecord{Step: "a", Kind: "b", Since: &time.Time{}, Reconciled: []observe.Look{{Finding: "c"}}, Settled: "d"},
			`{"step":"a","kind":"b","since":"0001-01-01T00:00:00Z","reconciled":[{"finding":"c","since":"0001-01-01T00:00:00Z","durationMs":0}],"settled":"d"}`},
		{observe.Stream{}, `{"events":0,"terminal":false,"close":""}`},
		{observe.Stream{Resumed: 2}, `{"events":0,"terminal":false,"close":"","resumed":2}`},
	} {
		if got, err := json.Marshal(c.value); err != nil || string(got) != c.want {
			t.Errorf("%s (%v)\nwant %s", got, err, c.want)
		}
	}
}
