package definition

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
)

// placedOutput is an output together with the YAML values that it was read from, at whose lines
// problems with the output are reported.
type placedOutput struct {
	Output
	at    value            // the output's path, or the table's name
	given map[string]value // the output's values in the file, by key
}

// readLoad reads load:, the list of outputs. Outputs that have a path or a table are kept for
// further checks, whatever else is wrong with them.
func (r *reader) readLoad(v value) {
	for _, e := range v.List() {
		out := placedOutput{Output: Output{Partition: PartitionNone}}
		partition := optional("partition", intoOneOf(&out.Partition, PartitionNone, PartitionDay, PartitionMonth, PartitionYear))
		if hasKey(e, "database") {
			r.readTable(e, &out, partition)
		} else {
			r.readFile(e, &out, partition)
		}
		if out.Path == "" {
			continue
		}
		if !out.Dataset() && out.Partition != PartitionNone {
			out.given["partition"].Fail("end the path with a slash, or leave partition out", "a single file cannot be partitioned")
			out.Partition = PartitionNone
		}
		r.def.Outputs = append(r.def.Outputs, out.Output)
		r.outputs = append(r.outputs, out)
	}
}

// readFile reads e, an output that is a file or a dataset, into out. Keys of tables, such as dsn,
// are refused as unknown.
func (r *reader) readFile(e value, out *placedOutput, partition field) {
	codebook := true
	out.given = e.Section(
		required("path", func(v value) { r.readPath(v, out) }), optional("database", nil),
		optional("format", nil), optional("csv", nil), optional("compression", nil), partition,
		optional("codebook", intoBoolean(&codebook)),
		optional("s3", func(v value) { out.S3 = readS3(v, out.Path) }),
	)
	if out.NoCodebook = !codebook; out.Path == "" {
		return
	}
	if f := r.readFormat(out); f != nil {
		out.Format = f.Name
		out.readCompression(f)
		out.readCSV(f)
	}
}

var (
	schemeShape = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://`)
	bracedShape = regexp.MustCompile(`\{([^{}]*)\}`)
)

// readPath reads the path of an output and makes it absolute.
func (r *reader) readPath(v value, out *placedOutput) {
	text, ok := v.Text()
	if !ok || !checkBraces(v, text) {
		return
	}
	intoParsed(&out.Path, r.parsePath, "")(v)
	if base := path.Base(text); out.Path != "" && (base == "." || base == "..") && !strings.HasSuffix(text, "/") {
		v.Fail("write a file's name, or end the path with a slash for a dataset", "%s is a folder", Quote(text))
		out.Path = ""
	}
	out.at = v
}

func (r *reader) parsePath(text string) (string, error) {
	if m := schemeShape.FindStringSubmatch(text); m != nil {
		return r.parseAddress(strings.ToLower(m[1]), text[len(m[0]):])
	}
	if err := CheckLocal(text); err != nil {
		return "", err
	}
	local := filepath.ToSlash(r.local(text))
	if strings.HasSuffix(text, "/") && local != "/" {
		local += "/"
	}
	return local, nil
}

// parseAddress checks a path with a scheme, such as s3://bucket/key, and returns it. rest is what
// follows "://".
func (r *reader) parseAddress(scheme, rest string) (string, error) {
	bucket, key, _ := strings.Cut(rest, "/")
	switch {
	case !slices.Contains(r.o.Schemes, scheme):
		return "", fmt.Errorf("formetl cannot write to %s://; write a local path, or one that begins with %s://", scheme, strings.Join(r.o.Schemes, ":// or "))
	case bucket == "" || strings.ContainsAny(bucket, "{}@:?#"):
		return "", fmt.Errorf("the path has no valid bucket name; write %s://bucket/path", scheme)
	case key == "":
		return "", fmt.Errorf("the path has nothing after the bucket; write %s://%s/file.csv for one file, or %[1]s://%[2]s/folder/ for a dataset, which is a folder of many files", scheme, bucket)
	case path.Clean("/"+key) != strings.TrimSuffix("/"+key, "/"):
		return "", errors.New("the path has a second slash in a row, or a part that is . or ..; write it without")
	}
	return scheme + "://" + rest, nil
}

// checkBraces reports braces in a path that hold no placeholder such as {form}. It returns false
// if there are any.
func checkBraces(v value, text string) bool {
	names := placeholders()
	braced := make([]string, len(names))
	for i, name := range names {
		braced[i] = "{" + name + "}"
	}
	good := true
	for _, m := range bracedShape.FindAllStringSubmatch(text, -1) {
		if slices.Contains(braced, m[0]) {
			continue
		}
		good = false
		v.Fail(suggest(m[0], braced, "the placeholders are {form}, {pipeline}, {account} and {run_id}"), "%s is not a placeholder", Quote(m[0]))
	}
	if good && strings.ContainsAny(bracedShape.ReplaceAllString(text, ""), "{}") {
		v.Fail("write both braces, such as {form}", "the path has a { without a }, or a } without a {")
		return false
	}
	return good
}

// readFormat returns the format of an output, by format: or by the file's extension, and
// sets the compression that a single file's extension names. It returns nil after a problem.
func (r *reader) readFormat(out *placedOutput) *load.Format {
	v, format := out.at, out.given["format"]
	var f *load.Format
	if format.Given() {
		named, ok := pick(format, r.o.Formats, func(f load.Format) string { return f.Name })
		if !ok {
			return nil
		}
		f = &named
	}
	_, byName, codec := splitName(out.Path, r.o.Formats)
	switch {
	case out.Dataset() && f == nil:
		v.Fail("add format: parquet, or another format", "a dataset (a path that ends with a slash) needs a format")
		return nil
	case out.Dataset() && f.FileOnly:
		format.Fail("use ndjson, csv or parquet for a dataset, or write a path without the slash at its end", "the format %s is for single files only", f.Name)
		return nil
	case out.Dataset():
		return f
	case f == nil && byName == nil:
		var endings []string
		for _, f := range r.o.Formats {
			endings = append(endings, f.Extension)
		}
		v.Fail("end the path with one of "+strings.Join(endings, ", ")+", or with a slash for a dataset, or add format:", "the file's extension does not tell its format")
		return nil
	case f == nil:
		f = byName
	case byName != nil && byName.Name != f.Name:
		format.Fail("write format: "+byName.Name+", or end the path with "+f.Extension, "the path ends with %s, but the format is %s", byName.Extension, f.Name)
		return nil
	}
	inside := func(f load.Format) bool { return strings.Contains(path.Base(strings.ToLower(out.Path)), f.Extension) }
	if byName == nil && (path.Ext(out.Path) == "" || slices.ContainsFunc(r.o.Formats, inside)) {
		v.Warn("end the path with "+f.Extension, "other programs may not recognize the file, because names of %s files end with %s", f.Name, f.Extension)
	}
	if codec != "" && !f.Text {
		v.Fail("end the path with "+f.Extension+", and write compression: "+codec, "the compression of a %s file is inside it, so its name has no ending for that", f.Name)
		return nil
	}
	out.Compression = codec
	return f
}

// splitName divides the name of a file such as form1.csv.gz into its stem form1, the format that
// the extension .csv names, nil if there is none, and the codec that .gz names, "" for none.
func splitName(name string, formats []load.Format) (stem string, f *load.Format, codec string) {
	stem, codec = load.SplitCodec(name)
	ext := path.Ext(stem)
	if i := slices.IndexFunc(formats, func(f load.Format) bool { return strings.EqualFold(ext, f.Extension) }); i >= 0 {
		stem, f = strings.TrimSuffix(stem, ext), &formats[i]
	}
	return stem, f, codec
}

func (out *placedOutput) readCompression(f *load.Format) {
	v := out.given["compression"]
	if !v.Given() {
		return
	}
	codec, ok := v.OneOf(f.Compressions()...)
	if around := cmp.Or(out.Compression, load.CodecNone); ok && f.Text && !out.Dataset() && codec != around {
		v.Fail("end the path with "+f.Extension+load.CompressionExtension(codec)+", or leave compression out", "by the file's name the compression is %s, but this setting says %s", around, codec)
	} else if ok {
		out.Compression = codec
	}
}

// readCSV reads csv:, the settings of the format csv. With another format, csv: is a problem.
func (out *placedOutput) readCSV(f *load.Format) {
	switch v := out.given["csv"]; {
	case f.Profiles:
		if out.Profile = "strict"; v.Given() {
			v.Section(optional("profile", intoOneOf(&out.Profile, "strict", "excel")))
		}
	case v.Given():
		v.Fail("leave csv: out, or write format: csv", "these settings are for the format csv, not %s", out.Format)
	}
}

// A list column with explode: true has a child output beside each file and dataset. The child has
// a row for each element of the list, with the result's id and the element's position. A child is
// an output like any other, but it does not stand in the definition's file. A table of a database
// has no child output: the load of the table also loads the tables of its lists.

// Exploded tells whether the output is a child output: the elements of a list of another output.
func (o Output) Exploded() bool { return o.Explode != schemas.Source{} }

// exploded returns the columns with explode: true, lists whose elements are rows of an output of
// their own.
func (d *Definition) exploded() []schemas.Column {
	if d.Schema == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(d.Schema.Columns), func(c schemas.Column) bool { return !c.Explode })
}

// children returns the lists that have child outputs: the exploded columns, and uploaded files.
func (d *Definition) children() []schemas.Column {
	lists := d.exploded()
	if d.Files != nil && d.Files.Table == "" {
		lists = append(lists, schemas.Column{Name: load.FilesTable, From: filesSource()})
	}
	return lists
}

// Explode adds the child outputs that the schema and files: ask for to Outputs: behind the other
// outputs, in the order of these and of the columns. Calling Explode again replaces the child
// outputs. Load calls it for a definition that it reads. The error is a *Fault.
func (d *Definition) Explode() error {
	d.Outputs = slices.DeleteFunc(d.Outputs, Output.Exploded)
	for _, out := range slices.Clone(d.Outputs) {
		for _, c := range d.children() {
			if out.Database != nil {
				continue
			}
			child, err := out.child(c)
			if err != nil {
				return err
			}
			d.Outputs = append(d.Outputs, child)
		}
	}
	if d.Files != nil && d.Files.Table != "" {
		d.Outputs = append(d.Outputs, Output{
			Path: d.Files.Table, S3: d.Files.S3, Format: "csv", Profile: d.Outputs[0].Profile, Partition: PartitionNone, NoCodebook: true, NoManifest: true, Explode: filesSource(),
		})
	}
	return nil
}

// child returns the child output of o for a list column. It lies beside o and has the settings
// of o, but no codebook.
func (o Output) child(c schemas.Column) (Output, error) {
	if o.Path == StdoutPath {
		return o, Unsupported(fmt.Sprintf("explode: true (column %s) on standard output, which is one file,", c.Name), "write to a file, or leave explode out of the schema")
	}
	problem := noPathName(c.Name)
	if problem == "" && strings.ContainsAny(c.Name, "{}") {
		problem = "contains a brace"
	}
	if problem != "" {
		return o, Unsupported(fmt.Sprintf("explode: true for the column %s, which cannot be part of a path (its name %s),", Quote(c.Name), problem), "rename the column, or leave explode out")
	}
	o.Path, o.Explode = ChildPath(o.Path, c.Name), c.From
	o.NoCodebook = true // the main output's codebook describes the list
	return o, nil
}

// ChildPath returns the path of the child output of a list column. It is the parent's path with
// "__" and the column's name added: out/form1.csv.gz gives out/form1__column.csv.gz, and out/form1/
// gives out/form1__column/.
func ChildPath(parent, column string) string {
	if folder, ok := strings.CutSuffix(parent, "/"); ok {
		return folder + "__" + column + "/"
	}
	at := strings.LastIndexByte(parent, '/') + 1
	stem, _ := load.SplitCodec(parent[at:])
	stem = strings.TrimSuffix(stem, path.Ext(stem))
	return parent[:at] + stem + "__" + column + parent[at+len(stem):]
}
