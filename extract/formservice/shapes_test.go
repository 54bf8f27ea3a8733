package formservice

import (
	"strings"
	"testing"
)

// TestShapes holds the shapes of answers that try a client's patience: items out of order, an
// item that comes twice, and a short empty value.
func TestShapes(t *testing.T) {
	items := []Item{
		{ID: "7", Type: "file", Index: 3}, {ID: "2", Type: "checkbox", Index: 2, Choices: []string{"red", "blue"}}, {ID: "1", Type: "number", Index: 1},
	}
	results := []Result{{
		ID: 8, Metas: []Meta{{metaStatus, "Complete"}, {"login_email", "a@example.com"}, {"payment_amount", "5.00"}, {"score", "3"}, {"user_os", "Linux"}},
		Items: []Answer{{ID: "7", Values: []string{MadeFiles + "f-1"}}, {ID: "2", Values: []string{"red"}}, {ID: "1", Values: []string{"5"}}, {ID: "2", Values: []string{"blue"}}},
	}, {ID: 9, Items: []Answer{{ID: "2", Values: []string{"blue"}}, {ID: "1", Values: []string{""}}}}}
	s := startService(t, &Server{Forms: []*Form{NewForm("form1", items, results)}, API: Both})
	const v1 = `<items><item id="2" index="2" type="checkbox"><value>blue</value></item><item id="1" index="1" type="number"><value/></item></items>`
	if body := s.send(t, "GET", resultsPath, "fs_min_id=9").body; !strings.Contains(body, v1) {
		t.Errorf("%s\nwant\n%s", body, v1)
	}
	const v2 = `"login_email":"a@example.com","payment_amount":"5.00","score":"3","user_os":"Linux","items":[{"id":"7","position":3,"values":[{"position":0,"value":"` + MadeFiles + `f-1"}]}`
	if body := s.v2(t, "GET", "/forms/form1/results?before_id=9").body; !strings.Contains(body, v2) {
		t.Errorf("%s\nwant\n%s", body, v2)
	}
}
