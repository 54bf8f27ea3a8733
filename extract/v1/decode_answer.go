package v1

import (
	"cmp"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// readEnvelope reads the whole document. The root element is fs_response, or fs_result in older
// services (specification, sections 4 and 9). success reads the content of a successful answer. If
// the answer reports an error, readEnvelope returns that error. Some services label XML as HTML,
// so the label affects only error texts.
func (d *decoder) readEnvelope(success func() error) error {
	s := &d.scan
	_, err := s.next()
	name := s.Bytes(s.name)
	s.Ours = err == nil && (string(name) == "fs_response" || string(name) == "fs_result")
	switch {
	case !s.Ours && d.html:
		return notHTML()
	case err != nil:
		return err
	}
	var refused error
	read, start := s.skip, int(s.name.Start)
	switch status, _ := s.attr("status"); {
	case !s.Ours:
		refused = s.Problem(transport.FaultForeign, start, "not from the service: the root element is neither fs_response nor fs_result")
	case string(status) == "success":
		read = success
	case string(status) == "error":
		read = func() error {
			root, err := readTree(s, new(int))
			if err == nil {
				refused = root.failure()
			}
			return err
		}
	default:
		refused = s.Problem(transport.FaultWrong, start, "not from the service: the root element's status is neither success nor error")
	}
	if err := read(); err != nil {
		return err
	}
	_, err = s.next() // nothing but comments may follow the root
	return cmp.Or(err, s.Wrong(), refused)
}

// readPage reads the content of a successful answer of Get Results into the page.
func (d *decoder) readPage() error {
	s := &d.scan
	found, other := false, ""
	err := s.children(func(name []byte) error {
		switch string(name) {
		case "results":
			if found {
				s.NoteWrong(int(s.name.Start), "a second results element")
				return s.skip()
			}
			found = true
			return d.readResults()
		case "headings":
			return d.readHeadings(0)
		case "count", "forms", "form", "status", "publish": // answers of other transactions
			other = " (it has a " + string(name) + " element)"
		}
		return s.skip()
	})
	if err == nil && !found {
		s.NoteWrong(-1, "it reports success but has no results element"+other)
	}
	return err
}

// readText reads the rest of the element whose start tag was read last. It returns the element's
// character data and CDATA, joined, including the text of elements inside it.
func (d *decoder) readText() (page.Span, error) {
	d.texts = d.texts[:0]
	err := d.readTexts()
	return d.scan.join(d.texts), err
}

// readTexts reads to the end of the innermost open element and adds all its texts to d.texts.
func (d *decoder) readTexts() error {
	s := &d.scan
	for outer := len(s.open) - 1; len(s.open) > outer; {
		ev, err := s.next()
		if err != nil {
			return err
		}
		if ev == eventText {
			d.texts = append(d.texts, s.text)
		}
	}
	return nil
}

// readHeadings reads the column labels, whose shape is not specified. It takes elements named
// heading, meta or item, with the column's id in the attribute for or id, and ignores elements
// without an id. Elements named metas or items around a heading tell its kind; without them
// its kind is group.
func (d *decoder) readHeadings(group page.Kind) error {
	return d.scan.children(func(name []byte) error {
		switch string(name) {
		case "metas":
			return d.readHeadings(page.KindMeta)
		case "items":
			return d.readHeadings(page.KindItem)
		case "meta":
			return d.readHeading(page.KindMeta)
		case "item":
			return d.readHeading(page.KindItem)
		case "heading":
			return d.readHeading(group)
		}
		return d.scan.skip()
	})
}

func (d *decoder) readHeading(kind page.Kind) error {
	s := &d.scan
	id, ok := s.attr("for")
	if !ok {
		id, ok = s.attr("id")
	}
	if !ok || len(id) == 0 {
		return s.skip()
	}
	h := page.Heading{ID: d.Intern(id), Kind: kind}
	label, err := d.readText()
	if err != nil {
		return err
	}
	h.Label = page.PlainLabel(d.Intern(s.Bytes(label)))
	d.Page.Headings = append(d.Page.Headings, h)
	return nil
}
