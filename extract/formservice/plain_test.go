package formservice

import (
	"strings"
	"testing"
)

// TestPlain holds how public clients have seen the answers of both generations, and how those
// differ that try a client's patience.
func TestPlain(t *testing.T) {
	items := []Item{
		{ID: "7", Type: "file", Index: 3}, {ID: "2", Type: "checkbox", Index: 2, Choices: []string{"red", "blue"}}, {ID: "1", Type: "number", Index: 1},
	}
	results := []Result{{
		ID: 8, Metas: []Meta{{metaStatus, "Complete"}, {"login_email", "a@example.com"}, {"payment_amount", "5.00"}, {"score", "3"}, {"user_os", "Linux"}},
		Items: []Answer{{ID: "7", Values: []string{MadeFiles + "f-1"}}, {ID: "2", Values: []string{"red"}}, {ID: "1", Values: []string{"5"}}, {ID: "2", Values: []string{"blue"}}},
	}, {ID: 9, Items: []Answer{{ID: "2", Values: []string{"blue"}}, {ID: "1", Values: []string{""}}}}}
	for _, c := range []struct {
		plain    bool
		api, ids string
		want     string // HOST is the service's
	}{
		{
			true, V1, "fs_max_id=8",
			`<meta id="result_status">Complete</meta><meta id="login_email">a@example.com</meta><meta id="payment_amount">5.00</meta><meta id="score">3</meta><meta id="user_os">Linux</meta></metas>` + "\n" +
				`<items><item id="1" index="1" type="text"><value>5</value></item>` +
				`<item id="2" index="2" type="list"><value index="1">red</value><value index="2">blue</value></item>` +
				`<item id="7" index="3" type="text"><value>https://HOST/acme/files/f-1</value></item></items>`,
		},
		{true, V1, "fs_min_id=9", `<items><item id="1" index="1" type="text"><value></value></item><item id="2" index="2" type="list"><value index="1">blue</value></item></items>`},
		{false, V1, "fs_min_id=9", `<items><item id="2" index="2" type="checkbox"><value>blue</value></item><item id="1" index="1" type="number"><value/></item></items>`},
		{
			true, V2, "before_id=9",
			`{"id":"8","result_status":"Complete","user_os":"Linux","items":[{"id":"1","position":1,"value":"5"},` +
				`{"id":"2","position":2,"values":[{"position":0,"value":"red"},{"position":1,"value":"blue"}]},` +
				`{"id":"7","position":3,"values":[{"position":0,"value":"https://HOST/acme/files/f-1"}]}]}`,
		},
		{false, V2, "before_id=9", `"login_email":"a@example.com","payment_amount":"5.00","score":"3","user_os":"Linux","items":[{"id":"7","position":3,"values":[{"position":0,"value":"` + MadeFiles + `f-1"}]}`},
	} {
		s := startService(t, &Server{Forms: []*Form{NewForm("form1", items, results)}, API: Both, Plain: c.plain})
		var body string
		if c.api == V1 {
			body = s.send(t, "GET", resultsPath, c.ids).body
		} else {
			body = s.v2(t, "GET", "/forms/form1/results?"+c.ids).body
		}
		if want := strings.ReplaceAll(c.want, "HOST", strings.TrimPrefix(s.url, "http://")); !strings.Contains(body, want) {
			t.Errorf("plain %v, %s %s:\n%s\nwant\n%s", c.plain, c.api, c.ids, body, want)
		}
	}
}
