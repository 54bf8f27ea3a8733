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
	"github.com/formetl/formetl/schemas/nearest"
)

// placedOutput is an output together with the values that it was read from, at
// which its problems are reported.
type placedOutput struct {
	Output
	at    value            // its path, or a table's name
	given map[string]value // by key
}

func (r *reader) readLoad(v value) {
	for _, e := range v.List() {
		codebook, db := true, Database{}
		isTable := hasKey(e, "database")
		given := e.Section(slices.Concat(
			[]field{{"path", !isTable, nil}}, noted("format", "csv", "partition", "compression"), []field{optional("codebook", intoBoolean(&codebook))},
			noted("s3", "database", "dsn", "table"), []field{
				optional("control_schema", intoParsed(&db.Control, parseControl, "write a schema's name, such as formetl")),
				optional("adopt", intoBoolean(&db.Adopt)),
				optional("soft_delete", intoBoolean(&db.SoftDelete)),
				optional("audit", intoBoolean(&db.Audit)),
				optional("after", intoParsed(&db.After, r.readAfter, "name a file with SQL")),
			})...)
		if given == nil {
			continue
		}
		out := placedOutput{Output{NoCodebook: !codebook, Partition: PartitionNone}, given["path"], given}
		var whole bool
		if isTable {
			whole = r.readDatabase(&out, &db)
		} else if whole = r.readPath(&out); whole {
			out.refuseDatabaseKeys()
			f := r.readFormat(&out)
			out.readCompression(f)
			out.readCSV(f)
			out.S3 = readS3(given["s3"], out.Path)
		}
		if whole {
			out.readPartition()
			r.def.Outputs = append(r.def.Outputs, out.Output)
		}
		r.outputs = append(r.outputs, out)
	}
}

var (
	schemeShape = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://`)
	bracedShape = regexp.MustCompile(`\{([^{}]*)\}`)
)

// readPath reads the path of an output and makes it absolute.
func (r *reader) readPath(out *placedOutput) bool {
	v := out.at
	if !v.Given() {
		return false
	}
	text, ok := v.Text()
	if !ok || !checkBraces(v, text) {
		return false
	}
	intoParsed(&out.Path, r.parsePath, "")(v)
	if base := path.Base(text); out.Path != "" && (base == "." || base == "..") && !strings.HasSuffix(text, "/") {
		v.Fail("write a file's name, or end the path with a slash for a dataset", "%s is a folder", Quote(text))
		return false
	}
	return out.Path != ""
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

// parseAddress checks the path of an output that is not a local one.
func (r *reader) parseAddress(scheme, rest string) (string, error) {
	bucket, key, _ := strings.Cut(rest, "/")
	switch {
	case !slices.Contains(r.o.Schemes, scheme):
		return "", fmt.Errorf("nothing is written to %s://; write a local path without a scheme, or one that begins with %s://", scheme, strings.Join(r.o.Schemes, ":// or "))
	case bucket == "" || strings.ContainsAny(bucket, "{}@:?#"):
		return "", fmt.Errorf("the path names no bucket, or one that cannot be; write %s://bucket/path", scheme)
	case key == "":
		return "", fmt.Errorf("the path has nothing after the bucket; write %s://bucket/file.csv for a file or %[1]s://bucket/folder/ for a dataset", scheme)
	case path.Clean("/"+key) != strings.TrimSuffix("/"+key, "/"):
		return "", errors.New("the path is not in its shortest form; write the path without empty parts, . and ..") //nolint:revive,staticcheck // the text ends with the name of a folder
	}
	return scheme + "://" + rest, nil
}

// checkBraces reports braces in a path that hold no placeholder.
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
		remedy := "only {form}, {pipeline}, {account} and {run_id} are replaced"
		v.Fail(cmp.Or(nearest.Ask(m[0], braced), remedy), "nothing is known to replace %s with", Quote(m[0]))
	}
	if good && strings.ContainsAny(bracedShape.ReplaceAllString(text, ""), "{}") {
		v.Fail("write a placeholder whole, such as {form}", "the path has a brace without its partner")
		return false
	}
	return good
}

// readFormat finds the format and, for a single file, its outer compression.
func (r *reader) readFormat(out *placedOutput) *load.Format {
	format := out.given["format"]
	var byName *load.Format
	if format.Given() {
		f, ok := pick(format, r.o.Formats, func(f load.Format) string { return f.Name })
		if !ok {
			return nil
		}
		byName = &f
	}
	if out.Dataset() {
		return out.datasetFormat(byName)
	}
	stem, codec := load.SplitCodec(out.Path)
	var byExtension *load.Format
	var names []string
	for i, f := range r.o.Formats {
		if names = append(names, f.Name); strings.EqualFold(path.Ext(stem), f.Extension) {
			byExtension = &r.o.Formats[i]
		}
	}
	v := out.at
	switch {
	case byName == nil && byExtension == nil:
		v.Fail("add format: with one of "+strings.Join(names, ", ")+", or end the path with a slash for a dataset", "the file's extension names no format")
		return nil
	case byName == nil:
		byName = byExtension
	case byExtension != nil && byExtension.Name != byName.Name:
		out.given["format"].Fail("write format: "+byExtension.Name+", or let the path end with "+byName.Extension, "the path ends with %s, the format is %s", byExtension.Extension, byName.Name)
		return nil
	}
	if codec != "" && !byName.Text {
		v.Fail("let the path end with "+byName.Extension+" and set compression:", "the format %s is compressed inside, not around", byName.Name)
		return nil
	}
	out.Format, out.Compression = byName.Name, codec
	return byName
}

func (out *placedOutput) datasetFormat(f *load.Format) *load.Format {
	switch {
	case f == nil:
		out.at.Fail("add format: parquet, or another format", "a dataset (a path that ends with a slash) needs a format")
		return nil
	case f.FileOnly:
		out.given["format"].Fail("use ndjson, csv or parquet for a dataset, or write a path without the slash at its end", "%s is for single files only: it cannot be divided into parts that are read together", f.Name)
		return nil
	}
	out.Format = f.Name
	return f
}

func (out *placedOutput) readCompression(f *load.Format) {
	v := out.given["compression"]
	if !v.Given() || f == nil {
		return
	}
	codec, ok := v.OneOf(f.Compressions()...)
	if !ok {
		return
	}
	if f.Text && !out.Dataset() {
		if around := cmp.Or(out.Compression, load.CodecNone); codec != around {
			v.Fail("let the path end with "+f.Extension+load.CompressionExtension(codec)+", or leave compression out", "a file's name tells its compression: %s by the path, %s here", around, codec)
			return
		}
	}
	out.Compression = codec
}

func (out *placedOutput) readPartition() {
	if !out.given["partition"].Given() {
		return
	}
	intoOneOf(&out.Partition, PartitionNone, PartitionDay, PartitionMonth, PartitionYear)(out.given["partition"])
	if !out.Dataset() && out.Partition != PartitionNone {
		out.given["partition"].Fail("end the path with a slash, or leave partition out", "a single file cannot be partitioned")
		out.Partition = PartitionNone
	}
}

// readCSV reads the settings of the format csv.
func (out *placedOutput) readCSV(f *load.Format) {
	switch {
	case f != nil && f.Profiles:
		out.Profile = "strict"
		if out.given["csv"].Given() {
			out.given["csv"].Section(optional("profile", intoOneOf(&out.Profile, "strict", "excel")))
		}
	case f != nil && out.given["csv"].Given():
		out.given["csv"].Fail("leave csv: out, or write format: csv", "these settings are for the format csv, not %s", out.Format)
	}
}

// A list column with explode: true has a child output beside each output. It has a
// row for each element of the list, with the result's id and the element's position.
// A child is an output like any other, but it does not stand in the file.

// Exploded tells whether the output is the child of another one.
func (o Output) Exploded() bool { return o.Explode != schemas.Source{} }

// Explode adds the child outputs that the schema asks for to Outputs. Calling it
// again replaces them. Load has done it for definitions that are read from a file.
func (d *Definition) Explode() error {
	d.Outputs = slices.DeleteFunc(d.Outputs, Output.Exploded)
	for _, out := range slices.Clone(d.Outputs) {
		children, err := d.children(out)
		if err != nil {
			return err
		}
		d.Outputs = append(d.Outputs, children...)
	}
	return nil
}

// children makes the child outputs of an output, in the order of the columns.
func (d *Definition) children(out Output) (children []Output, err error) {
	for _, c := range d.exploded() {
		child, err := out.child(c)
		if err != nil {
			return nil, err
		}
		children = append(children, child)
	}
	return children, nil
}

// exploded are the list columns whose elements are rows of an output of their own.
func (d *Definition) exploded() []schemas.Column {
	if d.Schema == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(d.Schema.Columns), func(c schemas.Column) bool { return !c.Explode })
}

// addChildren adds the child outputs to the definition. Problems with a child are
// reported at the path of the output that it lies beside.
func (r *reader) addChildren() {
	for _, out := range slices.Clone(r.outputs) {
		if out.Path == "" || out.Database != nil { // a table changes with those of its lists
			continue
		}
		children, err := r.def.children(out.Output)
		if err != nil {
			out.at.FailWith(err, "mend the schema")
			return
		}
		for _, child := range children {
			r.outputs = append(r.outputs, placedOutput{Output: child, at: out.at})
			r.def.Outputs = append(r.def.Outputs, child)
		}
	}
}

// childNote explains a child output in a message, because people do not find it in
// their file. It is "" for other outputs.
func (out placedOutput) childNote() string {
	if !out.Exploded() {
		return ""
	}
	return fmt.Sprintf("; %s is the child output of the list from %s (explode: true)", Quote(out.Path), out.Explode)
}

// child makes the child output of a column. It lies beside the output and has the
// output's settings.
func (o Output) child(c schemas.Column) (Output, error) {
	if o.Path == StdoutPath {
		return o, Unsupported(fmt.Sprintf("explode: true (column %s) on standard output, which is one file,", c.Name), "write to a file, or leave explode out of the schema")
	}
	problem := ""
	if err := checkPathName("column", c.Name); err != nil {
		problem = err.Reason
	} else if strings.ContainsAny(c.Name, "{}") {
		problem = "holds a brace"
	}
	if problem != "" {
		return o, Unsupported(fmt.Sprintf("explode: true for a column whose name %s cannot be part of a path (it %s)", Quote(c.Name), problem), "rename the column, or leave explode out")
	}
	o.Path, o.Explode = ChildPath(o.Path, c.Name), c.From
	o.NoCodebook = true // the main output's codebook describes the list
	return o, nil
}

// ChildPath is the path of the child output of a column. It is the parent's path with
// "__" and the column's name added, in a file's name before its extensions.
func ChildPath(parent, column string) string {
	if folder, ok := strings.CutSuffix(parent, "/"); ok {
		return folder + "__" + column + "/"
	}
	at := strings.LastIndexByte(parent, '/') + 1
	stem, _ := load.SplitCodec(parent[at:])
	stem = strings.TrimSuffix(stem, path.Ext(stem))
	return parent[:at] + stem + "__" + column + parent[at+len(stem):]
}
