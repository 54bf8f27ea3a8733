package cli

import (
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/ddl"
)

// writtenAt is what lies at an output, as statements need to know it. location
// takes the place of the paths of its kind: file or dataset.
func writtenAt(l pipelines.Left, location string) (ddl.Written, error) {
	w := ddl.Written{
		Path: l.Path, Format: l.Format, Compression: l.Compression, Profile: l.Profile,
		Hive: l.Partition != definition.PartitionNone, Known: l.Manifest != nil,
	}
	switch {
	case location != "" && strings.HasSuffix(location, "/") == w.Dataset():
		w.Path = l.At(location)
	case l.S3 != nil:
		w.Endpoint, w.Region = l.S3.Endpoint, l.S3.Region
	}
	if strings.Contains(l.Path, "{run_id}") {
		w.Refuse = "each run has a place of its own; write a path without {run_id}"
	}
	if l.Manifest == nil {
		return w, nil
	}
	for _, c := range l.Manifest.Schema {
		t, err := schemas.ParseType(c.Type)
		if err != nil {
			return w, err
		}
		w.Columns = append(w.Columns, schemas.Column{Name: c.Name, Type: t})
	}
	leading := load.LeadingColumns(l.Manifest.Schema)
	for _, p := range l.Manifest.Parts {
		part := ddl.Part{Path: p.Path, Bytes: p.Bytes, Rows: p.Rows, Leading: leading[p.Columns]}
		if p.Columns != "" && part.Leading == 0 {
			part.Leading = ddl.OtherColumns
		}
		if !w.Dataset() {
			part.Path = ""
		}
		w.Parts = append(w.Parts, part)
	}
	return w, nil
}
