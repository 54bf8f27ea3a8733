package cli

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
)

// testKey opens the services of the tests.
const testKey = "cli-test-key"

// smallForm is a form of four results that people can check by eye.
func smallForm() *formservice.Form {
	items := []formservice.Item{
		{ID: "1", Type: "text", Index: 1, Label: "Full name"},
		{ID: "12", Type: "checkbox", Index: 2, Label: "Colours", Choices: []string{"red", "green", "blue"}},
		{ID: "353-0-0", Type: "text", Index: 3, Label: "Price (€)"},
	}
	result := func(id int64, status, finished string, answers ...formservice.Answer) formservice.Result {
		return formservice.Result{ID: id, Items: answers, Metas: []formservice.Meta{{ID: "result_status", Value: status}, {ID: "date_finish", Value: finished}}}
	}
	answer := func(id string, values ...string) formservice.Answer {
		return formservice.Answer{ID: id, Values: values}
	}
	f := formservice.NewForm("form1", items, []formservice.Result{
		result(101, "Complete", "2026-01-05 09:00:00", answer("1", "Ada, \"Countess\""), answer("12", "red", "blue"), answer("353-0-0", "12.50")),
		result(102, "Complete", "2026-01-20 23:59:59", answer("1", "Grace\nHopper"), answer("12", "green"), answer("353-0-0", "7")),
		result(105, "Incomplete", "2026-02-01 00:00:00", answer("1", ""), answer("353-0-0", "x")),
		result(106, "Complete", "2026-02-28 12:00:00", answer("1", "=1+1"), answer("12", "a|b", "c")),
	})
	f.ID, f.Name, f.Description = "1001", "Customer feedback", "Two\nlines \x1b[31mred"
	f.Metas = []string{"result_status", "date_finish"}
	f.Views = []formservice.View{{ID: "7", Columns: []string{"1", "result_status", "date_finish"}, Where: nil}}
	f.Labels = map[string]map[string]string{"2": {"1": "Name in full"}}
	return f
}

// uploadsForm is a form of three results with four uploaded files.
func uploadsForm() *formservice.Form {
	result := func(id int64, photo string, cvs ...string) formservice.Result {
		r := formservice.Result{
			ID: id, Metas: []formservice.Meta{{ID: "date_finish", Value: fmt.Sprintf("2026-01-%d 09:00:00", id-190)}, {ID: "date_update", Value: fmt.Sprintf("2026-01-%d 09:00:00", id-190)}},
			Items: []formservice.Answer{{ID: "1", Values: []string{"Ada"}}},
		}
		for i := range cvs {
			cvs[i] = formservice.MadeFiles + cvs[i]
		}
		if cvs != nil {
			r.Items = append(r.Items, formservice.Answer{ID: "7", Values: cvs})
		}
		if photo != "" {
			r.Items = append(r.Items, formservice.Answer{ID: "8", Values: []string{formservice.MadeFiles + photo}})
		}
		return r
	}
	f := formservice.NewForm("uploads", []formservice.Item{
		{ID: "1", Type: "text", Index: 1, Label: "Full name"}, {ID: "7", Type: "list", Index: 2, Label: "CV"}, {ID: "8", Type: "text", Index: 3, Label: "Photo"},
	}, []formservice.Result{
		result(201, "sig-12-8-201_..%2f..%2fme.png", "f-12-7-201_cv.pdf"), result(202, "", "f-12-7-202_cv.pdf", "f-12-7-202_Zeugnis%20%C3%BC.docx"), result(203, ""),
	})
	f.ID, f.Name, f.Description = "1777", "Applications", ""
	f.Metas = []string{"date_finish", "date_update"}
	return f
}

// largeForm needs several pages and windows.
func largeForm(directory string, results int) *formservice.Form {
	return formservice.Generate(formservice.GenerateOptions{Directory: directory, Name: "Orders", Results: results, Seed: 3, Items: 6})
}

// newService is a service of small forms over real HTTP, in both generations.
func newService(key string, forms ...*formservice.Form) (*formservice.Server, *httptest.Server) {
	s := &formservice.Server{API: formservice.Both, Key: key, Accounts: []string{"other"}, Forms: forms, Files: true}
	return s, httptest.NewServer(s)
}

// crooked answers as no service should: the first element of the path says how.
//
//	/code/N      an error envelope of code N that repeats the request
//	/html        HTTP 200 with a page that repeats the request, in every spelling
//	/bad/STATUS  the same page with that status
//	/wrong       a success that holds nothing of what was asked for
//	/moved       a redirect that repeats the query
//	/deaf        no answer: the connection is cut
//	/half        an envelope that ends in the middle of the request's address
func crooked() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/code/{code}/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `<fs_response status="error"><error code="%s">refused: %s</error></fs_response>`, html.EscapeString(r.PathValue("code")), html.EscapeString(echo(r)))
	})
	page := func(w http.ResponseWriter, r *http.Request, status int) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		fmt.Fprintf(w, "<!DOCTYPE html><html><head><title>%s</title></head><body>%s<br></body></html>", echo(r), html.EscapeString(echo(r)))
	}
	mux.HandleFunc("/html/", func(w http.ResponseWriter, r *http.Request) { page(w, r, http.StatusOK) })
	mux.HandleFunc("/wrong/", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<fs_response status="success"><nothing/></fs_response>`)
	})
	mux.HandleFunc("/bad/{status}/", func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscan(r.PathValue("status"), &status)
		page(w, r, status)
	})
	mux.HandleFunc("/moved/", func(w http.ResponseWriter, r *http.Request) {
		key := r.URL.Query().Get("fs_api_key")
		w.Header().Set("Location", "https://elsewhere.invalid/"+url.PathEscape(key)+"/x?"+r.URL.RawQuery+"#"+url.QueryEscape(key))
		w.WriteHeader(http.StatusFound)
	})
	mux.HandleFunc("/deaf/", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/half/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `<fs_response status="error"><error code="0">%s`, html.EscapeString(r.URL.RequestURI()))
	})
	return mux
}

// echo repeats a request and its key, in the spellings that a careless server
// may choose.
func echo(r *http.Request) string {
	key := r.URL.Query().Get("fs_api_key")
	if key == "" { // API v2
		key = strings.TrimPrefix(r.Header.Get("Authorization"), "bearer ")
	}
	body, _ := io.ReadAll(r.Body)
	return strings.Join([]string{
		r.URL.RequestURI(), string(body), key, url.QueryEscape(key), url.PathEscape(key), lowerHex(key), html.EscapeString(key),
		strings.ToLower(url.QueryEscape(key)), fmt.Sprintf("%q", key), fmt.Sprintf("%+q", key),
		url.QueryEscape(url.QueryEscape(key)), jsonText(key),
	}, " ")
}

func newCrooked(t testing.TB) string {
	s := httptest.NewUnstartedServer(crooked())
	s.Config.ErrorLog = nil
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}
