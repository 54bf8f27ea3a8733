package v1

import (
	"bytes"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// readEnvelope reads the whole document: an envelope whose content success
// reads, or an error.
func readEnvelope(s *scanner, html bool, success func() error) error {
	failed, err := readRoot(s, html)
	if err != nil {
		return err
	}
	var refused error
	if failed {
		root := nodeOf(s)
		err = root.read(s)
		refused = root.failure()
	} else {
		err = success()
	}
	if err == nil {
		_, err = s.next() // nothing but comments may follow the root
	}
	if err != nil {
		return err
	}
	return refused
}

// readSuccess reads what a successful answer holds.
func (d *decoder) readSuccess(bounds Bounds) error {
	s := &d.scan
	found, other := false, ""
	for {
		more, err := s.child()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		switch string(s.bytes(s.name)) {
		case "results":
			if found {
				return s.problem(transport.FaultWrong, int(s.name.Start), "a second results element")
			}
			found = true
			err = d.readResults(bounds)
		case "headings":
			err = d.readHeadings(0)
		default:
			other = otherAnswer(s.bytes(s.name), other)
			err = s.skip()
		}
		if err != nil {
			return err
		}
	}
	if !found {
		return s.problem(transport.FaultWrong, -1, "another form's shape: a success without a results element"+other)
	}
	return nil
}

// readRoot reads the envelope's start tag: fs_response, earlier fs_result
// (specification, sections 4 and 9). failed tells that it holds an error.
// html tells that the answer is labelled or begins as an HTML page: some
// services label their XML so, hence it only decides what the error says.
func readRoot(s *scanner, html bool) (failed bool, err error) {
	_, err = s.next()
	name := s.bytes(s.name)
	isEnvelope := err == nil && (string(name) == "fs_response" || string(name) == "fs_result")
	switch {
	case !isEnvelope && html:
		return false, notHTML()
	case err != nil:
		return false, err
	case !isEnvelope:
		return false, s.problem(transport.FaultForeign, int(s.name.Start), "not an answer of the service: the root element is neither fs_response nor fs_result")
	}
	s.ours = true
	status, _ := s.attr("status")
	switch string(status) {
	case "success":
		return false, nil
	case "error":
		return true, nil
	}
	return false, s.problem(transport.FaultWrong, int(s.name.Start), "not an answer of the service: the root element's status is neither success nor error")
}

// otherAnswer names the transaction that a success without results belongs to.
func otherAnswer(element []byte, before string) string {
	switch string(element) {
	case "count", "forms", "form", "status", "publish":
		return ", with a " + string(element) + " element"
	}
	return before
}

// readText reads the rest of the element whose start tag was read last and
// returns its text: its character data and CDATA, joined, without that of its
// child elements.
func (d *decoder) readText() (page.Span, error) {
	s := &d.scan
	var text page.Span
	for {
		ev, err := s.next()
		if err != nil {
			return page.Span{}, err
		}
		switch ev {
		case eventText:
			text = s.join(text)
		case eventStart:
			if err := s.skip(); err != nil {
				return page.Span{}, err
			}
		case eventEnd:
			return text, nil
		}
	}
}

// readHeadings reads the column labels. Their shape is not specified: the
// elements are called heading, or meta and item like the columns. The id is in
// for or id. They may be grouped under metas and items, which then tell their
// kind. An element without an id is not a column's label.
func (d *decoder) readHeadings(group page.Kind) error {
	s := &d.scan
	for {
		more, err := s.child()
		if err != nil || !more {
			return err
		}
		switch string(s.bytes(s.name)) {
		case "metas":
			err = d.readHeadings(page.KindMeta)
		case "items":
			err = d.readHeadings(page.KindItem)
		case "meta":
			err = d.readHeading(page.KindMeta)
		case "item":
			err = d.readHeading(page.KindItem)
		case "heading":
			err = d.readHeading(group)
		default:
			err = s.skip()
		}
		if err != nil {
			return err
		}
	}
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
	h.Label = d.Intern(s.bytes(label))
	d.Page.Headings = append(d.Page.Headings, h)
	return nil
}

func isBlank(b []byte) bool { return len(bytes.TrimLeft(b, blanks)) == 0 }
