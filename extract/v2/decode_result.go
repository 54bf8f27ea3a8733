package v2

import "github.com/formetl/formetl/extract/page"

// readResults reads the array of results at s.Pos.
func (d *decoder) readResults() error {
	s := &d.scan
	if err := s.enter(); err != nil {
		return err
	}
	d.layout.Reset()
	d.known = d.known[:0]
	d.addSlot()
	d.addSlot()
	d.row = 0
	for first := true; ; first = false {
		more, err := s.more(first, ']')
		if err != nil || !more {
			return err
		}
		if s.Buf[s.Pos] != '{' {
			s.NoteWrong(s.Pos, "a result that is not an object")
			if err := s.skip(); err != nil {
				return err
			}
			continue
		}
		if d.Page.Len() == page.MaxResults {
			return s.TooMany(s.Pos, "results", page.MaxResults)
		}
		if err := d.readResult(); err != nil {
			return err
		}
	}
}

// readResult reads one result.
func (d *decoder) readResult() error {
	s := &d.scan
	start := s.Pos
	if err := s.enter(); err != nil {
		return err
	}
	d.Result(0)
	d.row++
	d.layout.Result()
	for first := true; ; first = false {
		if at := d.guess(place(false, first)); at >= 0 {
			if err := d.readGuessed(at); err != nil {
				return err
			}
			continue
		}
		from := s.Pos
		more, err := s.more(first, '}')
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if err := d.readMember(first, from); err != nil {
			return err
		}
	}
	if d.known[slotID].row != d.row {
		s.NoteWrong(start, "a result without an id; choose a results view (view) that shows the reference number")
	}
	return nil
}

// readGuessed reads the value of a result's member whose tag was just read. at is its slot.
func (d *decoder) readGuessed(at int32) error {
	s := &d.scan
	start := s.Pos
	switch d.known[at].kind {
	case kindItems:
		s.open++
		d.once(slotItems, start, "items")
		return d.readItems()
	case kindID:
		text, err := s.text(start)
		if err == nil {
			d.setID(text)
		}
		return err
	default:
		text, err := s.text(start)
		if err != nil {
			return err
		}
		return d.addMeta(at, text, start)
	}
}

// readMember reads a member of a result that was not guessed. from is the offset where the member
// before it ends; first tells that there is no member before it.
func (d *decoder) readMember(first bool, from int) error {
	s := &d.scan
	s.Rewrote = false
	var name page.Span
	if err := s.key(&name); err != nil {
		return err
	}
	key := s.Bytes(name)
	quoted := s.Buf[s.Pos] == '"'
	switch {
	case string(key) == "id":
		if quoted {
			d.learn(slotID, kindID, first, d.tag(from, s.Pos+1))
		}
		return d.readID()
	case string(key) == "items":
		return d.readItemsMember(first, from)
	case page.KnownMeta(string(key)):
		at, _ := d.field(page.KindMeta, key)
		if quoted {
			d.learn(at, kindMeta, first, d.tag(from, s.Pos+1))
		}
		return d.readMeta(at)
	}
	return s.skip()
}

// readMeta reads the value of a meta at s.Pos. A meta that is null counts as absent.
func (d *decoder) readMeta(at int32) error {
	start := d.scan.Pos
	text, ok, err := d.scan.scalar("a meta that is an object or an array")
	if err != nil || !ok {
		return err
	}
	return d.addMeta(at, text, start)
}

// addMeta adds a meta to the result. A second value of the same meta is blamed.
func (d *decoder) addMeta(at int32, text page.Span, start int) error {
	known := &d.known[at]
	if known.row == d.row {
		d.scan.NoteWrong(start, "a meta that comes twice in a result")
		return nil
	}
	known.row = d.row
	if meta := d.Page.Fields[at-fieldSlots].ID; page.IsDate(meta) {
		var second int64
		text, second = toWall(d.scan.Buf, text, d.zone)
		switch i := d.Page.Len() - 1; {
		case second != d.early:
		case meta == page.MetaFinish:
			d.Page.MarkEarly(i)
		case meta == page.MetaStart:
			d.begun = append(d.begun, i)
		}
	}
	if err := d.room(2, start); err != nil {
		return err
	}
	d.Cell(at - fieldSlots)
	d.Value(text)
	return nil
}

// markUnfinished marks unfinished results as early (see page.Page.Early). begun are the indexes of
// the results that were started in the second before the window: their start is the only date by
// which a service may filter unfinished results.
func markUnfinished(p *page.Page, begun []int) {
	for _, i := range begun {
		incomplete, finished := false, false
		for _, c := range p.Cells(i) {
			f := p.Fields[c.Field]
			if f.Kind == page.KindMeta && c.Values > 0 {
				incomplete = incomplete || f.ID == page.MetaStatus && string(p.Value(c, 0)) == "Incomplete"
				finished = finished || f.ID == page.MetaFinish && len(p.Value(c, 0)) > 0
			}
		}
		if incomplete && !finished {
			p.MarkEarly(i)
		}
	}
}

// room takes n cells and values from d.spare; an error if maxValues is exceeded.
func (d *decoder) room(n, at int) error {
	if d.spare -= n; d.spare < 0 {
		return d.scan.TooMany(at, "values", maxValues)
	}
	return nil
}

// once records that the result has the member of slot at. A second such member is blamed.
func (d *decoder) once(at int32, start int, name string) {
	known := &d.known[at]
	if known.row == d.row {
		d.scan.NoteWrong(start, "a second "+name+" in one result")
	}
	known.row = d.row
}

// readID reads the id of a result at s.Pos, a string or a number (service-v2.md,
// section 6).
func (d *decoder) readID() error {
	text, ok, err := d.scan.scalar("an id that is an object or an array")
	if err == nil && ok {
		d.setID(text)
	}
	return err
}

func (d *decoder) setID(text page.Span) {
	s := &d.scan
	d.once(slotID, int(text.Start), "id")
	d.SetID(s.ResultID(s.Bytes(text), int(text.Start)))
}
