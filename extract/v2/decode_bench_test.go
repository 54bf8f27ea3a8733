package v2

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// benchPage is an answer of n results with 13 metas and 30 items each, as the service
// writes them: compact, dates with milliseconds, some choices, escapes and characters
// beyond ASCII.
func benchPage(n int) []byte {
	values := []string{
		"Ada", "Lovelace", "ada@example.com", "I would recommend this to a friend", "5", "2026-01-31",
		"The staff were friendly, but the queue took more than half an hour \\u0026 nobody told us why.", "Zürich", "Yes",
		`All \"good\" <3`, "1,299.00", "https://fs1.example.com/files/f-12-345", "None of the above", "", "Very satisfied",
	}
	var b strings.Builder
	b.WriteString(`{"results":[`)
	for r := range n {
		if r > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"%d","result_status":"Complete",`, 1_000_000+r)
		for i, name := range []string{"date_start", "date_finish", "date_update"} {
			fmt.Fprintf(&b, `"%s":"2026-%02d-%02dT12:%02d:%02d.%03dZ",`, name, 1+r%6, 1+r%28, r%60, i, r%1000)
		}
		fmt.Fprintf(&b, `"user_ip":"198.51.100.%d","user_browser":"Chrome","user_device":"Desktop","user_os":"Windows (deprecated)",`, r%256)
		b.WriteString(`"user_referrer":"N/A","login_username":"","login_email":"","items":[`)
		for i := range 30 {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"id":"%d","position":%d,`, 100+i, i+1)
			switch {
			case i%10 == 4:
				fmt.Fprintf(&b, `"values":[{"position":%d,"value":"Choice %d"}]}`, r%5, r%5)
			case i%10 == 9 && r%3 == 0:
				fmt.Fprintf(&b, `"values":[]}`)
			case i%10 == 9:
				fmt.Fprintf(&b, `"values":[{"position":0,"value":"Red"},{"other":"Teal","position":3,"value":"Another colour"}]}`)
			default:
				fmt.Fprintf(&b, `"value":"%s"}`, values[(r+i)%len(values)])
			}
		}
		b.WriteString("]}")
	}
	b.WriteString("]}\n")
	return []byte(b.String())
}

// benchZone has two changes of the clocks a year.
func benchZone(tb testing.TB) *time.Location {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		tb.Fatal(err)
	}
	return zone
}

// benchShapes are pages of one content in several spellings.
func benchShapes() map[string][]byte {
	body := benchPage(PageSize)
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, body, "", "  "); err != nil {
		panic(err)
	}
	return map[string][]byte{
		"plain": body, "pretty": pretty.Bytes(),
		"slashes":  bytes.ReplaceAll(body, []byte("/"), []byte(`\/`)),
		"cyrillic": bytes.ReplaceAll(body, []byte("recommend this to a friend"), []byte("рекомендую это своим друзьям и коллегам")),
		"numbers":  bytes.ReplaceAll(body, []byte(`"value":"5"`), []byte(`"value":5`)),
	}
}

// decodeOnce decodes a body as the client does, with pooled memory.
func decodeOnce(tb testing.TB, body []byte, zone *time.Location) {
	d := newDecoder(zone)
	d.Text = append(d.Text, body...)
	if err := d.decode(); err != nil {
		tb.Fatal(err)
	}
	p := d.Finish()
	d.release()
	if p.Len() != PageSize || len(p.Fields) != 41 {
		tb.Fatal(p.Len(), len(p.Fields))
	}
	p.Release()
}

func BenchmarkDecodePage(b *testing.B) {
	zone := benchZone(b)
	for name, body := range benchShapes() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				decodeOnce(b, body, zone)
			}
		})
	}
}

// TestNoAllocations: a page costs none, once the memory of a decoder has grown. The pool
// is left out, because the race detector lets it lose what it holds.
func TestNoAllocations(t *testing.T) {
	for name, body := range benchShapes() {
		d := newDecoder(benchZone(t))
		decode := func() {
			d.Text = append(d.Text[:0], body...)
			if err := d.decode(); err != nil {
				t.Fatal(err)
			}
		}
		decode()
		decode() // a text of the decoder's own may have changed places with the answer
		if n := testing.AllocsPerRun(20, decode); n >= 1 {
			t.Errorf("%s: %s allocations a page", name, strconv.FormatFloat(n, 'f', 1, 64))
		}
		d.release()
	}
}
