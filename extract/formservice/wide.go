package formservice

import (
	"fmt"
	"strconv"
	"time"
)

// The size of the form that Wide makes: questions, and the items that they
// have, which are columns of its results.
const (
	WideQuestions = 300
	WideItems     = 1600

	wideMatrices = 130 // questions with wideRows items each
	wideRows     = 11
	wideEqual    = 60 // questions with one label
)

// Wide returns a form that tries whoever makes columns of questions: 300
// questions with 1,600 items (130 of them matrices of eleven rows), labels in
// ten scripts, 60 of them equal, others that differ in case or in signs alone,
// are words of SQL, empty, or longer than any name may be. Results are dated
// an hour apart from 2026-01-01 on; each answers most questions. Equal
// arguments give equal forms.
func Wide(directory string, results int) *Form {
	items := make([]Item, 0, WideItems)
	for q := range WideQuestions - wideMatrices {
		items = append(items, Item{
			ID: strconv.Itoa(1 + q*7), Type: wideType(q), Index: len(items) + 1, Label: wideLabel(q),
			Choices: []string{"a", "b|c", `d\e`},
		})
	}
	for m := range wideMatrices {
		for row := range wideRows {
			items = append(items, Item{
				ID: fmt.Sprintf("%d-%d-%d", 2000+m, row, 0), Type: "matrix", Index: len(items) + 1,
				Label: wideScript(m) + " " + strconv.Itoa(m/len(wideScripts())) + " – " + wideRow(row),
			})
		}
	}
	made := make([]Result, results)
	for i := range made {
		made[i] = wideResult(items, i)
	}
	f := NewForm(directory, items, made)
	f.Metas = []string{metaStatus, metaFinish, "user_ip"}
	return f
}

// wideScripts are labels in ten scripts and more, some of them twice in other
// spellings.
func wideScripts() []string {
	return []string{
		"How satisfied were you?", "Как вы нас нашли?", "Πώς μας βρήκατε;", "كيف وجدتنا؟", "איך מצאת אותנו?",
		"आपने हमें कैसे पाया?", "你是怎么找到我们的？", "どうやって見つけましたか", "어떻게 찾으셨나요?", "คุณพบเราได้อย่างไร",
		"Ինչպե՞ս գտաք մեզ", "როგორ გვიპოვეთ?",
	}
}

func wideScript(n int) string { return wideScripts()[n%len(wideScripts())] }

func wideRow(n int) string {
	return []string{
		"Price", "price", "PRICE", "Qualität der Räume & des Essens, auch für Gäste mit besonderen Wünschen", "Service", "Dauer",
		"Größe", "Grösse", "", "Überblick", "Select",
	}[n]
}

// wideLabel labels a question with one item: first those that are equal, then
// words of SQL, then the scripts.
func wideLabel(q int) string {
	reserved := []string{"select", "Order", "GROUP", "table", "user", "From", "where", "index", "primary", "end", "timestamp", "column", "result_id"}
	hostile := []string{"", " ", "\n", "1st", "a\"b", "a'b", "a`b", "$x", "drop table x; --", "Größe", "groesse", "GROSSE", "item_1", "x\u202ey"}
	switch {
	case q < wideEqual:
		return "Comment"
	case q-wideEqual < len(reserved):
		return reserved[q-wideEqual]
	case q-wideEqual-len(reserved) < len(hostile):
		return hostile[q-wideEqual-len(reserved)]
	}
	return wideScript(q) + " " + strconv.Itoa(q/3)
}

func wideType(q int) string {
	return []string{"text", "number", "date", "checkbox", "decimal"}[q%5]
}

func wideResult(items []Item, n int) Result {
	at := time.Date(2026, 1, 1, n, 0, 0, 0, time.UTC)
	r := Result{Metas: []Meta{{metaStatus, "Complete"}, {metaFinish, at.Format(WallTime)}, {"user_ip", "198.51.100." + strconv.Itoa(n%256)}}}
	for i, it := range items {
		h := mix(uint64(n), uint64(i))
		if h%8 == 0 {
			continue // not answered
		}
		a := Answer{ID: it.ID, Type: it.Type, Index: it.Index}
		switch it.Type {
		case "number":
			a.Values = []string{strconv.Itoa(int(h % 1000))}
		case "decimal":
			a.Values = []string{fmt.Sprintf("%d.%02d", h%100, h>>8%100)}
		case "date":
			a.Values = []string{at.AddDate(0, 0, int(h%365)).Format(time.DateOnly)}
		case "checkbox":
			a.Values = it.Choices[:1+h%3]
		case "matrix":
			a.Values = []string{strconv.Itoa(int(1 + h%5))}
		default:
			a.Values = []string{"answer " + strconv.Itoa(int(h%100))}
		}
		r.Items = append(r.Items, a)
	}
	return r
}
