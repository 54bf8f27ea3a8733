package checkpoint

import (
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// stats is transform.Stats as JSON: keys that are structs become texts or
// entries of a list.
type stats struct {
	Rows     int64                     `json:"rows"`
	Rejected int64                     `json:"rejected,omitempty"`
	Rejects  []fault                   `json:"rejects,omitempty"`
	Nulled   []fault                   `json:"nulled,omitempty"`
	Joined   map[string]int64          `json:"joined,omitempty"`
	Shifted  map[string]int64          `json:"shifted,omitempty"`
	Ignored  map[string]int64          `json:"ignored,omitempty"` // by source
	Added    []load.Column             `json:"added,omitempty"`
	Seen     map[string]transform.Seen `json:"seen,omitempty"` // by source
}

type fault struct {
	Column string `json:"column"`
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}

func encodeStats(s transform.Stats) stats {
	return stats{
		Rows: s.Rows, Rejected: s.Rejected, Rejects: faults(s.Rejects), Nulled: faults(s.Nulled), Joined: s.Joined, Shifted: s.Shifted,
		Ignored: bySource(s.Ignored), Added: EncodeColumns(s.Added), Seen: bySource(s.Seen),
	}
}

func (r stats) decoded() (s transform.Stats, err error) {
	s = transform.Stats{
		Rows: r.Rows, Rejected: r.Rejected, Rejects: faultMap(r.Rejects), Nulled: faultMap(r.Nulled), Joined: r.Joined, Shifted: r.Shifted,
	}
	if s.Added, err = DecodeColumns(r.Added); err != nil {
		return s, err
	}
	if s.Ignored, err = parseSources(r.Ignored); err != nil {
		return s, err
	}
	s.Seen, err = parseSources(r.Seen)
	return s, err
}

func faults(m map[transform.Fault]int64) []fault {
	list := make([]fault, 0, len(m))
	for k, n := range m {
		list = append(list, fault{Column: k.Column, Reason: k.Reason, Count: n})
	}
	return list
}

func faultMap(list []fault) map[transform.Fault]int64 {
	if len(list) == 0 {
		return nil
	}
	m := make(map[transform.Fault]int64, len(list))
	for _, f := range list {
		m[transform.Fault{Column: f.Column, Reason: f.Reason}] = f.Count
	}
	return m
}

func bySource[V any](m map[schemas.Source]V) map[string]V {
	if len(m) == 0 {
		return nil
	}
	texts := make(map[string]V, len(m))
	for from, v := range m {
		texts[from.String()] = v
	}
	return texts
}

func parseSources[V any](texts map[string]V) (map[schemas.Source]V, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	m := make(map[schemas.Source]V, len(texts))
	for text, v := range texts {
		from, err := schemas.ParseSource(text)
		if err != nil {
			return nil, err
		}
		m[from] = v
	}
	return m, nil
}
