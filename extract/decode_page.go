package extract

import (
	"bytes"
	"strconv"
	"strings"
)

// readAnswer reads the whole document: an envelope with results, or an error.
func (p *Page) readAnswer(html bool, bounds Bounds) error {
	failed, err := readRoot(&p.scan, html)
	if err != nil {
		return err
	}
	var service *ServiceError
	if failed {
		service, err = p.readFailure()
	} else {
		err = p.readSuccess(bounds)
	}
	if err != nil {
		return err
	}
	if _, err := p.scan.next(); err != nil {
		return err // nothing but comments may follow the root
	}
	if failed {
		return service
	}
	return nil
}

// readSuccess reads what a successful answer holds.
func (p *Page) readSuccess(bounds Bounds) error {
	s := &p.scan
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
				return s.wrong(int(s.name.start), "a second results element")
			}
			found = true
			err = p.readResults(bounds)
		case "headings":
			err = p.readHeadings(0)
		default:
			other = otherAnswer(s.bytes(s.name), other)
			err = s.skip()
		}
		if err != nil {
			return err
		}
	}
	if !found {
		return s.wrong(-1, "another form's shape: a success without a results element"+other)
	}
	return nil
}

// readFailure reads an error envelope. Of several errors the last counts.
func (p *Page) readFailure() (*ServiceError, error) {
	s := &p.scan
	service := newServiceError("", "")
	for {
		more, err := s.child()
		if err != nil {
			return nil, err
		}
		if !more {
			return service, nil
		}
		if string(s.bytes(s.name)) != "error" {
			if err := s.skip(); err != nil {
				return nil, err
			}
			continue
		}
		attr, _ := s.attr("code")
		code := string(attr)
		message, err := p.readText()
		if err != nil {
			return nil, err
		}
		service = newServiceError(code, string(s.bytes(message)))
	}
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
		return false, s.foreign(int(s.name.start), "not an answer of the service: the root element is neither fs_response nor fs_result")
	}
	s.ours = true
	status, _ := s.attr("status")
	switch string(status) {
	case "success":
		return false, nil
	case "error":
		return true, nil
	}
	return false, s.wrong(int(s.name.start), "not an answer of the service: the root element's status is neither success nor error")
}

// otherAnswer names the transaction that a success without results belongs to.
func otherAnswer(element []byte, before string) string {
	switch string(element) {
	case "count", "forms", "form", "status", "publish":
		return ", with a " + string(element) + " element"
	}
	return before
}

// newServiceError returns the error of an envelope: its code attribute, and
// its text without the blanks around it.
func newServiceError(code, message string) *ServiceError {
	n, err := strconv.Atoi(strings.TrimSpace(code))
	if err != nil {
		n = CodeNone
	}
	return &ServiceError{Code: n, Message: strings.TrimSpace(message)}
}

// readText reads the rest of the element whose start tag was read last and
// returns its text: its character data and CDATA, joined, without that of its
// child elements.
func (p *Page) readText() (span, error) {
	s := &p.scan
	var text span
	for {
		ev, err := s.next()
		if err != nil {
			return span{}, err
		}
		switch ev {
		case eventText:
			text = s.join(text)
		case eventStart:
			if err := s.skip(); err != nil {
				return span{}, err
			}
		case eventEnd:
			return text, nil
		}
	}
}

// readHeadings reads the column labels. Their shape is not specified: the
// elements are called heading, or meta and item like the columns, the id is in
// for or id, and they may be grouped under metas and items, which then tell
// their kind. What has no id is not a column's label.
func (p *Page) readHeadings(group Kind) error {
	s := &p.scan
	for {
		more, err := s.child()
		if err != nil || !more {
			return err
		}
		switch string(s.bytes(s.name)) {
		case "metas":
			err = p.readHeadings(KindMeta)
		case "items":
			err = p.readHeadings(KindItem)
		case "meta":
			err = p.readHeading(KindMeta)
		case "item":
			err = p.readHeading(KindItem)
		case "heading":
			err = p.readHeading(group)
		default:
			err = s.skip()
		}
		if err != nil {
			return err
		}
	}
}

func (p *Page) readHeading(kind Kind) error {
	s := &p.scan
	id, ok := s.attr("for")
	if !ok {
		id, ok = s.attr("id")
	}
	if !ok || len(id) == 0 {
		return s.skip()
	}
	h := Heading{ID: p.intern(id), Kind: kind}
	label, err := p.readText()
	if err != nil {
		return err
	}
	h.Label = p.intern(p.text[label.start:label.end])
	p.Headings = append(p.Headings, h)
	return nil
}

// Bounds of the strings that a pooled page keeps.
const (
	maxInterns   = 4096
	maxInternLen = 256
)

// intern returns b as a string, the same one for the same bytes.
func (p *Page) intern(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if s, ok := p.interns[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(s) > maxInternLen {
		return s
	}
	if p.interns == nil || len(p.interns) >= maxInterns {
		p.interns = make(map[string]string)
	}
	p.interns[s] = s
	return s
}

func isBlank(b []byte) bool { return len(bytes.TrimLeft(b, blanks)) == 0 }
