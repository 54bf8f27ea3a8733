package ddl

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/formetl/formetl/schemas"
)

func redshift() *Dialect {
	return &Dialect{
		Name: "redshift", quote: doubled(`"`), text: doubledEscaped,
		limit: limits{
			columns: 1600, bytes: 127, path: 3,
			reserved: []string{"oid", "tableoid", "xmin", "cmin", "xmax", "cmax", "ctid", "deletexid", "insertxid"},
		},
		exact: true, formats: []string{"parquet"},
		create: createRedshift, load: loadRedshift,
		refuse: func(w Written) string {
			if why := only("s3")(w); why != "" {
				return why
			}
			if !w.Known {
				return "Redshift's manifest names parts and their sizes, and no run has written any yet; run the definition first"
			}
			return ""
		},
	}
}

func redshiftType(t schemas.Type) string {
	if _, list := elem(t); list {
		return "SUPER"
	}
	return scalars{"VARCHAR(65535)", "BIGINT", "DOUBLE PRECISION", "BOOLEAN", "DATE", "TIMESTAMPTZ", "DECIMAL(%d, %d)"}.of(t)
}

func createRedshift(d *Dialect, s *script, t Table) {
	s.items("CREATE TABLE IF NOT EXISTS "+d.table(t)+" (", each(t, func(c schemas.Column) string {
		return d.quote(c.Name) + " " + redshiftType(c.Type) + notNull(c)
	}), ");")
	d.commentOn(s, t)
}

// redshiftStage is the temporary table that COPY fills. It has the columns in
// the files' order, as COPY takes those of Parquet by position, and plain
// timestamps in UTC, as COPY makes no TIMESTAMPTZ of them.
const redshiftStage = "formetl_load"

func loadRedshift(d *Dialect, s *script, t Table, w Written, o Options) {
	s.note("COPY reads its list of parts from %s; --only manifest prints it:", ManifestPath(w))
	list := ""
	if t.List != "" {
		list = " --list " + shellQuote(t.List)
	}
	s.note("formetl schema ddl DEFINITION --dialect redshift%s --only manifest | aws s3 cp - %s", list, shellQuote(ManifestPath(w)))
	s.line("BEGIN;")
	super := ""
	stage := each(t, func(c schemas.Column) string {
		name := redshiftType(c.Type)
		switch c.Type.Kind {
		case schemas.Timestamp:
			name = "TIMESTAMP"
		case schemas.List:
			super = "\nSERIALIZETOJSON"
		}
		return d.quote(c.Name) + " " + name
	})
	if !w.empty(o) {
		role := "default"
		if o.IAMRole != "" {
			role = d.text(o.IAMRole)
		}
		s.items("CREATE TEMPORARY TABLE "+redshiftStage+" (", stage, ");")
		s.line("COPY %s\nFROM %s\nIAM_ROLE %s\nFORMAT AS PARQUET\nFILLRECORD%s\nMANIFEST;", redshiftStage, d.text(ManifestPath(w)), role, super)
	}
	s.line("DELETE FROM %s;", d.table(t))
	if !w.empty(o) {
		s.items("INSERT INTO "+d.table(t)+" (", d.names(t), ")")
		s.items("SELECT", each(t, func(c schemas.Column) string {
			if c.Type.Kind == schemas.Timestamp {
				return d.quote(c.Name) + " AT TIME ZONE 'UTC'"
			}
			return d.quote(c.Name)
		}), "FROM "+redshiftStage+";")
		s.line("DROP TABLE %s;", redshiftStage)
	}
	s.line("COMMIT;")
}

// ManifestPath is where Redshift's manifest of an output belongs: beside it.
func ManifestPath(w Written) string {
	return strings.TrimSuffix(w.Path, "/") + ".redshift-manifest.json"
}

// ErrNoManifest is asked for of a dialect or outputs that have none.
var ErrNoManifest = errors.New("only Redshift reads a manifest, of Parquet on s3:// that a run has written")

type redshiftManifest struct {
	Entries []redshiftEntry `json:"entries"`
}

type redshiftEntry struct {
	URL       string       `json:"url"`
	Mandatory bool         `json:"mandatory"`
	Meta      redshiftMeta `json:"meta"`
}

type redshiftMeta struct {
	ContentLength int64 `json:"content_length"`
}

// Manifest gives the list of parts that Redshift's COPY reads. The error is
// ErrNoManifest where there is none.
func (d *Dialect) Manifest(outputs []Written) ([]byte, error) {
	best := d.best(Table{}, outputs)
	if d.Name != "redshift" || best < 0 {
		return nil, ErrNoManifest
	}
	w := outputs[best]
	m := redshiftManifest{Entries: []redshiftEntry{}}
	for _, p := range w.Parts {
		m.Entries = append(m.Entries, redshiftEntry{URL: w.Path + p.Path, Mandatory: true, Meta: redshiftMeta{p.Bytes}})
	}
	data, err := json.MarshalIndent(m, "", "  ")
	return append(data, '\n'), err
}
