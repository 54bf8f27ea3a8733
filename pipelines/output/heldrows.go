package output

// tellHeld fills in what a failed output still holds, as an earlier run left it. An output
// that was committed in this run says that already.
func (r *Report) tellHeld(t *target) {
	if t.committed || t.out == nil {
		return
	}
	m := t.out.at().manifest
	if m == nil {
		return
	}
	r.Rows, r.Parts, r.Bytes, r.Watermark = m.Rows, len(m.Parts), 0, m.Watermark
	for _, p := range m.Parts {
		r.Bytes += p.Bytes
	}
}
