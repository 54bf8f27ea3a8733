package ddl

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
)

func redshift() *Dialect {
	return &Dialect{
		Name: "redshift", quote: doubled(`"`), text: doubledEscaped,
		limit: limits{
			columns: 1600, bytes: 127, path: 3, scale: 37,
			reserved: []string{"oid", "tableoid", "xmin", "cmin", "xmax", "cmax", "ctid", "deletexid", "insertxid"},
		},
		types: types{
			text: "VARCHAR(65535)", integer: "BIGINT", float: "DOUBLE PRECISION", boolean: "BOOLEAN", date: "DATE",
			timestamp: "TIMESTAMPTZ", decimal: "DECIMAL(%d, %d)", list: "SUPER",
		},
		constraint: notNull,
		exact:      true, byPlace: true, formats: []string{"parquet"},
		load: loadRedshift,
		refuse: func(w Written) string {
			if w.scheme() != "s3" {
				return "the engine reads s3:// only; copy it there and give --location"
			}
			if !w.Known {
				return "Redshift's manifest names parts and their sizes, and no run has written any yet; run the definition first"
			}
			return ""
		},
	}
}

// inPlace returns an *UnfitError if the engine takes columns by position and a
// part of a dataset has its columns at other positions.
func (d *Dialect) inPlace(w Written, table string) error {
	if !d.byPlace || !w.Known || !w.Dataset() {
		return nil
	}
	for _, p := range w.Parts {
		if p.Leading == 0 {
			return &UnfitError{
				Dialect: d.Name, Table: plain.Line(table),
				Problems: []string{fmt.Sprintf("the part %s has other columns than the first ones of the manifest, or in another order, and %s takes a part's columns by position", plain.Line(p.Path), d.Name)},
				Remedy:   "run the definition with --full, which writes all parts anew in one order: formetl run DEFINITION --full",
			}
		}
	}
	return nil
}

// loadRedshift lets COPY fill a temporary table. COPY takes the columns of Parquet
// by position, so that table has all columns of the files in their order.
// FILLRECORD gives null for columns that are missing at the end. Timestamps in it
// are plain and in UTC, because COPY cannot make TIMESTAMPTZ from Parquet's.
func loadRedshift(d *Dialect, s *script, t Table, w Written, o Options) {
	s.note("COPY reads its list of parts from %s; --only manifest prints it:", ManifestPath(w))
	flags := ""
	for _, f := range [][2]string{{"form", o.Form}, {"list", t.List}, {"location", o.Location}} {
		if f[1] != "" {
			flags += " --" + f[0] + " " + shellQuote(f[1])
		}
	}
	s.note("formetl schema ddl DEFINITION --dialect redshift%s --only manifest > parts.json && aws s3 cp parts.json %s", flags, shellQuote(ManifestPath(w)))
	stage := t.loading()
	s.line("BEGIN;")
	if !w.empty(o) {
		super := ""
		if slices.ContainsFunc(w.Columns, isList) {
			super = "\nSERIALIZETOJSON"
		}
		files := *d
		files.types.timestamp = "TIMESTAMP"
		role := "default"
		if o.IAMRole != "" {
			role = d.text(o.IAMRole)
		}
		s.items("CREATE TEMPORARY TABLE "+stage+" (", each(w.Columns, files.typed), ");")
		s.line("COPY %s\nFROM %s\nIAM_ROLE %s\nFORMAT AS PARQUET\nFILLRECORD%s\nMANIFEST;", stage, d.text(ManifestPath(w)), role, super)
	}
	s.line("DELETE FROM %s;", d.path(t.Name))
	if !w.empty(o) {
		s.insert("INSERT INTO "+d.path(t.Name), each(t.Columns, d.column), each(t.Columns, func(c schemas.Column) string {
			if c.Type.Kind == schemas.Timestamp {
				return d.quote(c.Name) + " AT TIME ZONE 'UTC'"
			}
			return d.quote(c.Name)
		}), stage)
		s.line("DROP TABLE %s;", stage)
	}
	s.line("COMMIT;")
}

// ManifestPath returns the path of Redshift's manifest of an output, which lies beside the output.
func ManifestPath(w Written) string {
	return strings.TrimSuffix(w.Path, "/") + ".redshift-manifest.json"
}

// ErrNoManifest is returned for a dialect that reads no manifest, or if no output suits.
var ErrNoManifest = errors.New("only Redshift reads a manifest, of Parquet on s3:// that a run has written")

type redshiftEntry struct {
	URL       string           `json:"url"`
	Mandatory bool             `json:"mandatory"`
	Meta      map[string]int64 `json:"meta"`
}

// Manifest returns the list of parts that Redshift's COPY reads. The error is
// ErrNoManifest if there is none. It is an *UnfitError if the parts cannot be
// loaded together.
func (d *Dialect) Manifest(outputs []Written) ([]byte, error) {
	best := d.best(Table{}, outputs)
	if d.Name != "redshift" || best < 0 {
		return nil, ErrNoManifest
	}
	w := outputs[best]
	if err := d.inPlace(w, w.Path); err != nil {
		return nil, err
	}
	entries := make([]redshiftEntry, len(w.Parts))
	for i, p := range w.Parts {
		entries[i] = redshiftEntry{URL: w.Path + p.Path, Mandatory: true, Meta: map[string]int64{"content_length": p.Bytes}}
	}
	data, err := json.MarshalIndent(map[string]any{"entries": entries}, "", "  ")
	return append(data, '\n'), err
}
