package formservice

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Hostile returns the values that generated forms sprinkle in and that tests
// may hold: each has broken a CSV, JSON, XML or SQL tool somewhere. All are
// valid UTF-8 and allowed in XML 1.0.
func Hostile() []string {
	return []string{
		`"`, `""`, `say "hi", then leave`, `it's`, "a,b", "a;b", "a\tb", " leading and trailing ",
		"two\nlines", "three\r\nlines\r\n", "\r", "\n", "old\rMac",
		"]]>", "<![CDATA[x]]>", "<b>bold</b>", "<!-- -->", "<?xml?>", "&", "&amp;", "&amp;amp;", "&#13;", "&nbsp;", "&",
		"=1+1", "+1", "-1", "@SUM(A1)", "=cmd|' /C calc'!A0", "\t=1", "'=1",
		"😀", "👩‍👩‍👧‍👦 🇨🇭", "שלום עולם", "مرحبا", "\u202eevil\u202c", "line\u2028separator\u2029", "nel\u0085here",
		"\ufeffmark first", "mark\ufeffwithin", "\u00a0", "\u200b", "é e\u0301", "ﬃ", "Ärger & Öl €",
		`back\slash`, `\`, `\\`, `\n`, `\|`, "a|b", "|", `a\|b|`,
		"NULL", "null", "None", "NaN", "nil", `\N`, "true", "0", "-0", "007", "1e5", "0x1F", "1.0", "١٢٣",
		"' OR 1=1; --", "{}", `{"a":[1]}`, "${env:HOME}", "../../etc/passwd", "%s%n", "%20", "a+b", "#", "\u007f",
		"2025-02-30", "9223372036854775808", strings.Repeat("long ", 400),
		"�", "\U0010ffff", "𝔘𝔫𝔦", "ÿþ", "\"quoted\"\r\n\"field\"", "</value></item>",
	}
}

// controlValues hold characters that XML 1.0 forbids.
func controlValues() []string {
	return []string{"ver\vtical", "\x00", "bell\a", "\x1b[31mred", "\ufffe", "back\bspace", "\x1f"}
}

// vocabulary holds the words that generated results are made of.
type vocabulary struct {
	first, last [][]string // each with how it is written in a login
	agents      [][]string // browser, system and device
	zips        [][]string // of each country

	referrers, payments, sentences        []string
	hostile, control, files, hostileFiles []string
}

func makeVocabulary() vocabulary {
	return vocabulary{
		first: split("Anna|anna", "Ben|ben", "Chloé|chloe", "Dörte|doerte", "Eva-Maria|eva-maria", "Fyodor|fyodor",
			"Güneş|guenes", "Hana|hana", "İpek|ipek", "Jan|jan", "Kofi|kofi", "Łucja|lucja"),
		last: split("Meier|meier", "O'Neil|oneil", "van der Berg|vanderberg", "Smith|smith", "Ng|ng", "Ćirić|ciric",
			"Yamada|yamada", "García|garcia", "d’Arc|darc", "Müller|mueller", "Rossi|rossi"),
		agents: split("Chrome 126|Windows 11|desktop", "Edge 125|Windows 11|desktop", "Firefox 128|Linux|desktop", "Safari 17|macOS 14|desktop",
			"Chrome 126|Android 14|mobile", "Safari 17|iOS 17|mobile", "Safari 17|iPadOS 17|tablet"),
		zips:      split("01067|10115|20095|80331", "08001|28001|41001|46001", "06000|13001|33000|75001", "00184|20121|50122|80133", "00100|20100|33100|90100"),
		referrers: []string{"", "https://www.example.com/?a=1&b=2", "https://search.example/q?x=%20", "https://news.example/today"},
		payments:  []string{"", "paid", "pending", "refunded"},
		sentences: []string{
			"Everything was fine.", "The queue was long, the soup cold; \"never again\".", "Ça va très bien.", "I'd give 9/10.",
			"R&D asked for more.", "Grüße aus Zürich", "The menu at https://example.com/?q=a&b=c is out of date.", "Thank you, see you next year!",
			"Please open on Sundays too.", "The room was too small for 40 people.", "No complaints.",
		},
		hostile: Hostile(),
		control: controlValues(),
		files:   []string{"cv.pdf", "photo.jpg", "letter.docx", "notes.txt", "scan.png", "Lebenslauf%20Z%C3%BCrich.pdf"},
		hostileFiles: []string{
			"..%2f..%2fx", "%2F..%2F..%2F..%2Fetc%2Fpasswd", "..%5C..%5Cx.exe", strings.Repeat("long-", 60) + ".pdf", "README", ".profile",
			"CON.txt", "two%0Alines.txt", "zero%00byte.pdf", "100%25%20%23%3F.png", "evil%E2%80%AEfdp.exe", "cv.pdf%20.",
		},
	}
}

// split divides lines at bars.
func split(lines ...string) (rows [][]string) {
	for _, line := range lines {
		rows = append(rows, strings.Split(line, "|"))
	}
	return rows
}

// makeItems returns the items of a generated form: all types, a label that holds a line break, ids
// in no order. Unless NoHostile, labels also repeat and are empty, and choices hold separators.
func makeItems(o GenerateOptions) []Item {
	types := []string{
		"text", "text", "checkbox", "number", "date", "radio", "textarea", "zip", "matrix", "matrix",
		"decimal", "select", "list", "file",
	}
	labels := []string{
		"Full name", "Comment", "Colours", "Age", "Born on", "Size", "What\nelse?", "ZIP code ", "Waiting time", "Staff",
		"Price (CHF)", "Country", "Toppings; several", "Upload \"here\"",
	}
	choices := map[string][]string{
		"checkbox": {"red", "green", "blue", "yellow", "black", "white"},
		"list":     {"cheese", "ham", "olives", "Jalapeño", "onions", "mushrooms"},
		"radio":    {"S", "M", "L", "XL"},
		"select":   {"Deutschland", "España", "France", "Italia", "Suomi"},
		"matrix":   {"very poor", "poor", "fair", "good", "very good"},
	}
	if !o.NoHostile {
		copy(labels[8:], []string{"Comment", ""})
		copy(choices["checkbox"][3:], []string{"a|b", `c\d`, "light, bright"})
		copy(choices["list"][4:], []string{"double \"x\"", "none & nothing"})
	}
	step := 5 // the order of the document is not that of the form
	for gcd(step, o.Items) != 1 {
		step++
	}
	items := make([]Item, o.Items)
	for i := range items {
		kind := types[i%len(types)]
		id := strconv.Itoa(1 + i*37%1009)
		if kind == "matrix" {
			id = "353-" + strconv.Itoa(i/len(types)) + "-" + strconv.Itoa(i%len(types)-8)
		}
		items[i] = Item{ID: id, Type: kind, Index: i*step%o.Items + 1, Label: labels[i%len(labels)], Choices: choices[kind]}
	}
	// Those of the matrix follow the first of them.
	first := math.MaxInt
	for _, it := range items {
		if it.Type == "matrix" {
			first = min(first, it.Index)
		}
	}
	place := func(i int) int {
		if items[i].Type == "matrix" {
			return first
		}
		return items[i].Index
	}
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(items[a].Index, items[b].Index))
	})
	for rank, i := range order {
		items[i].Index = rank + 1
	}
	return items
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// makeViews returns two views: "101" shows a few columns, "102" those of
// complete results only.
func makeViews(items []Item) []View {
	columns := []string{metaStatus, metaFinish}
	for i, it := range items {
		if i%3 == 0 {
			columns = append(columns, it.ID)
		}
	}
	return []View{
		{ID: "101", Columns: columns},
		{ID: "102", Columns: columns, Where: []Condition{{Column: metaStatus, Operator: Equals, Term: "Complete"}}},
	}
}

// makeLabels returns one set of labels, "10", for every second item.
func makeLabels(items []Item) map[string]map[string]string {
	set := map[string]string{metaStatus: "Zustand"}
	for i, it := range items {
		if i%2 == 0 {
			set[it.ID] = "Frage " + strconv.Itoa(it.Index)
		}
	}
	return map[string]map[string]string{"10": set}
}
