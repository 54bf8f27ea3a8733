package formservice

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"
)

// ask prints the answer of a service to one request.
func ask(url string) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		panic(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		panic(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(err)
	}
	fmt.Printf("HTTP %d\n%s", resp.StatusCode, body)
}

// The zero value serves one generated form.
func Example() {
	service := httptest.NewServer(new(Server))
	defer service.Close()
	ask(service.URL + "/api/users/acme/forms/form1/results/count?fs_api_key=" + DefaultKey)
	// Output:
	// HTTP 200
	// <?xml version="1.0" encoding="UTF-8"?>
	// <fs_response status="success" timestamp="2026-01-01 00:00:00">
	// <count>1000</count>
	// </fs_response>
}

// A form holds what a test gives it; results may be finished between requests.
func ExampleNewForm() {
	form := NewForm("orders", []Item{{ID: "1", Type: "text", Index: 1, Label: "Name"}}, []Result{{
		ID:    7,
		Metas: []Meta{{ID: "result_status", Value: "Incomplete"}, {ID: "date_start", Value: "2026-01-01 10:00:00"}},
		Items: []Answer{{ID: "1", Values: []string{"R&D"}}},
	}})
	service := httptest.NewServer(&Server{Forms: []*Form{form}})
	defer service.Close()
	if err := form.Finish(7, time.Date(2026, 2, 1, 8, 30, 0, 0, time.UTC)); err != nil {
		panic(err)
	}
	ask(service.URL + "/api/users/acme/forms/orders/results?fs_api_key=" + DefaultKey + "&fs_min_date=2026-02-01")
	// Output:
	// HTTP 200
	// <?xml version="1.0" encoding="UTF-8"?>
	// <fs_response status="success" timestamp="2026-01-01 00:00:00">
	// <results>
	// <result id="7"><metas><meta id="result_status">Complete</meta><meta id="date_start">2026-01-01 10:00:00</meta><meta id="date_finish">2026-02-01 08:30:00</meta></metas>
	// <items><item id="1" index="1" type="text"><value>R&amp;D</value></item></items></result>
	// </results>
	// </fs_response>
}

// Faults are set at the start or between requests; the log tells what was asked.
func ExampleServer_SetFaults() {
	server := new(Server)
	service := httptest.NewServer(server)
	defer service.Close()
	faults, err := ParseFaults("busy-first=1,busy-status=429")
	if err != nil {
		panic(err)
	}
	server.SetFaults(faults)
	ask(service.URL + "/api/users/acme/forms/form1/results?fs_api_key=" + DefaultKey + "&fs_limit=1")
	for _, r := range server.Log() {
		fmt.Printf("request %d for %s of %s?%s: %s\n", r.Number, r.Transaction, r.Form, r.Query, r.Fault)
	}
	// Output:
	// HTTP 429
	// <?xml version="1.0" encoding="UTF-8"?>
	// <fs_response status="error" timestamp="2026-01-01 00:00:00">
	// <error code="3">the system is too busy; try again</error>
	// </fs_response>
	// request 1 for results of form1?fs_limit=1: busy
}
