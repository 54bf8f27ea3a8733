package formservice

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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
