package v1

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// benchPage is an answer of 100 results with 12 metas and 30 items each, as
// long as the service's documentation shows them: pretty-printed, with some
// references, CDATA and characters beyond ASCII.
func benchPage() []byte {
	metas := []string{
		"result_status", "login_username", "login_email", "date_start", "date_finish", "date_update",
		"user_ip", "user_browser", "user_os", "user_device", "user_referrer", "score",
	}
	values := []string{
		"Ada", "Lovelace", "ada@example.com", "I would recommend this to a friend", "5", "Very satisfied", "2026-01-31",
		"The staff were friendly, but the queue took more than half an hour &amp; nobody told us why.", "Zürich", "Yes",
		"<![CDATA[All good <3]]>", "1,299.00", "https://fs1.example.com/files/f-12-345", "None of the above", "",
	}
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<fs_response status="success" timestamp="2026-02-01 00:00:00">` + "\n  <results>\n")
	for r := range 100 {
		fmt.Fprintf(&b, "    <result id=\"%d\">\n      <metas>\n", 1_000_000+r)
		for m, id := range metas {
			v := fmt.Sprintf("%s %d", strings.ToUpper(id[:3]), r*m)
			if strings.HasPrefix(id, "date") {
				v = fmt.Sprintf("2026-01-%02d 12:%02d:%02d", 1+r%28, r%60, m)
			}
			fmt.Fprintf(&b, "        <meta id=\"%s\">%s</meta>\n", id, v)
		}
		b.WriteString("      </metas>\n      <items>\n")
		for i := range 30 {
			fmt.Fprintf(&b, "        <item id=\"%d\" index=\"%d\" type=\"text\">\n          <value>%s</value>\n        </item>\n", 100+i, i+1, values[(r+i)%len(values)])
		}
		b.WriteString("      </items>\n    </result>\n")
	}
	b.WriteString("  </results>\n</fs_response>\n")
	return []byte(b.String())
}

func BenchmarkDecodePage(b *testing.B) {
	body := benchPage()
	for _, c := range []struct {
		name string
		body []byte
	}{
		{"plain", body},
		{"compact", compact(body)},
		{"crlf", bytes.ReplaceAll(body, []byte("\n"), []byte("\r\n"))},
		{"gaps", without(body, 7)},
		{"cyrillic", bytes.ReplaceAll(body, []byte("recommend this to a friend"), []byte("рекомендую это своим друзьям и коллегам"))},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			for b.Loop() {
				d := newDecoder()
				d.Text = append(d.Text, c.body...)
				if err := d.decode("application/xml; charset=utf-8", d.readPage); err != nil {
					b.Fatal(err)
				}
				p := d.Finish()
				d.release()
				if p.Len() != 100 {
					b.Fatal(p.Len())
				}
				p.Release()
			}
		})
	}
}

// compact removes the blanks between tags.
func compact(body []byte) []byte {
	lines := bytes.Split(body, []byte("\n"))
	for i := range lines {
		lines[i] = bytes.TrimLeft(lines[i], " ")
	}
	return bytes.Join(lines, nil)
}

// without removes every n-th item, as results lack the answers that nobody gave.
func without(body []byte, n int) []byte {
	items := bytes.SplitAfter(body, []byte("</item>\n"))
	kept := items[:0:0]
	for i, item := range items {
		if at := bytes.Index(item, []byte("<item ")); at >= 0 && i%n == 0 {
			item = item[:at]
		}
		kept = append(kept, item)
	}
	return bytes.Join(kept, nil)
}
