package ddl

import (
	"fmt"
	"strings"

	"github.com/formetl/formetl/schemas"
)

// scheme returns the scheme of the path, such as "s3", or "" for a local path.
func (w Written) scheme() string {
	scheme, _, remote := strings.Cut(w.Path, "://")
	if !remote {
		return ""
	}
	return scheme
}

// named tells whether statements name the parts instead of using a pattern.
func (w Written) named(o Options) bool {
	return w.Known && (!w.Dataset() || !o.Glob)
}

// objects returns the paths of the output's data objects relative to w.Path:
// the known parts, or a pattern that finds them.
func (w Written) objects(o Options) []string {
	switch {
	case !w.Dataset():
		return []string{""}
	case !w.named(o):
		return []string{w.pattern()}
	}
	return each(w.Parts, func(p Part) string { return p.Path })
}

// empty tells whether the manifest lists no parts to load.
func (w Written) empty(o Options) bool { return w.named(o) && len(w.Parts) == 0 }

// pattern returns a pattern for the parts of a dataset, relative to its folder.
func (w Written) pattern() string {
	name := "part-*" + w.extension()
	if w.Hive {
		return "dt=*/" + name
	}
	return name
}

func (w Written) extension() string {
	if !w.text() {
		return "." + w.Format
	}
	return "." + w.Format + map[string]string{"gzip": ".gz", "zstd": ".zst"}[w.Compression]
}

// text tells whether the format is one whose whole files are compressed.
func (w Written) text() bool { return w.Format != "parquet" && w.Format != "arrow" }

// bucket splits a remote path into its bucket and the key below it.
func (w Written) bucket() (bucket, key string) {
	_, rest, _ := strings.Cut(w.Path, "://")
	bucket, key, _ = strings.Cut(rest, "/")
	return bucket, key
}

// rows returns the number of rows of all parts.
func (w Written) rows() int64 {
	var n int64
	for _, p := range w.Parts {
		n += p.Rows
	}
	return n
}

// wrongCount returns the end of an SQL condition that is true if the count of the loaded
// rows is wrong. It returns "" if any count is right. The manifest gives the right count
// for named parts. A single file may be of a later run, and the parts that a pattern
// finds are unknown. There only 0 is wrong, unless the manifest has no rows.
func (w Written) wrongCount(o Options) string {
	switch {
	case w.Dataset() && w.named(o):
		return fmt.Sprintf("<> %d", w.rows())
	case w.Known && w.rows() == 0:
		return ""
	}
	return "= 0"
}

// notWhole is the message with which an engine reports a wrong count.
const notWhole = "not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew"

// differs tells whether two outputs are known to hold different results.
func (w Written) differs(from Written) bool {
	return w.Known && from.Known && w.rows() != from.rows()
}

// notLoaded returns why best is loaded instead of w, which could be loaded too.
func (w Written) notLoaded(best Written) string {
	if w.differs(best) {
		return fmt.Sprintf("%s (%s) holds %d rows, not the %d of %s, and is not loaded", w.Path, w.Format, w.rows(), best.rows(), best.Path)
	}
	return fmt.Sprintf("%s (%s) holds the same results and is not loaded", w.Path, w.Format)
}

// inParts returns the manifest's columns without the last ones that no part has
// yet. The run that added those columns had no results to write.
func (w Written) inParts() []schemas.Column {
	most := 0
	for _, p := range w.Parts {
		if p.Leading == 0 {
			return w.Columns // the part's columns are not the first ones, or it is a single file
		}
		most = max(most, p.Leading)
	}
	if most == 0 {
		return w.Columns
	}
	return w.Columns[:min(most, len(w.Columns))]
}

const loading = "formetl_load"

// loading returns the name of the temporary table that first takes the files'
// rows. It differs from the table's own name, so that it does not hide the table.
func (t Table) loading() string {
	if strings.EqualFold(t.Name[len(t.Name)-1], loading) {
		return loading + "_2"
	}
	return loading
}
