package middlewaretest_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/surecall/surecall/middleware/middlewaretest"
)

// A payment whose first answer is lost after the tool has run.
func Example() {
	s := middlewaretest.NewServer(nil)
	defer s.Close()
	s.Script("pay", middlewaretest.Close().Executed())

	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{"order":"o-1"}}}`
	for range 2 { // a client that repeats without asking
		resp, err := s.Client().Post(s.URL(), "application/json", strings.NewReader(call))
		if err != nil {
			fmt.Println("no answer")
			continue
		}
		resp.Body.Close()
		fmt.Println(resp.Status)
	}
	fmt.Println("POSTs:", s.Posts("pay"), "paid:", s.EffectsByArg("pay", "order"))
	// Output:
	// no answer
	// 200 OK
	// POSTs: 2 paid: map[o-1:2]
}

// The catalogue says of each fault what a client should make of it.
func ExampleFaults() {
	for _, f := range middlewaretest.Faults() {
		if strings.HasPrefix(f.Name, "status-503") {
			e := f.Expected(nil)
			fmt.Printf("%s: the tool runs %v; %s, %s\n", f.Name, f.Execute, e.Outcome, e.Delivery)
		}
	}
	// Output:
	// status-503: the tool runs never; HTTP_ERROR, unknown
	// status-503-executed: the tool runs before; HTTP_ERROR, unknown
	// status-503-retry-after: the tool runs never; HTTP_ERROR, unknown
	// status-503-retry-after-executed: the tool runs before; HTTP_ERROR, unknown
	// status-503-retry-after-date: the tool runs never; HTTP_ERROR, unknown
	// status-503-body-never-comes: the tool runs never; HTTP_ERROR, unknown
	// status-503-body-never-comes-executed: the tool runs before; HTTP_ERROR, unknown
}

// A fault of one's own: a proxy's error page, after the tool has run, with
// another media type and a wait.
func ExampleFault() {
	s := middlewaretest.NewServer(nil)
	defer s.Close()
	s.Always("send_mail", middlewaretest.Fault{
		Name: "proxy", Execute: middlewaretest.Before,
		Status: http.StatusBadGateway, RetryAfter: 3e9,
		Header: http.Header{"Content-Type": {"text/html"}},
		Body:   "<h1>Bad gateway</h1>",
	})
	resp, err := s.Client().Post(s.URL(), "application/json",
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_mail"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status, resp.Header.Get("Retry-After"), s.Effects("send_mail"))
	// Output:
	// 502 Bad Gateway 3 1
}
