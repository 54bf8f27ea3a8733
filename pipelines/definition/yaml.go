package definition

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas/plain"
)

// maxDocument is the most bytes of a definition or schema file, far more than anybody writes.
const maxDocument = 1 << 20

// document is a YAML file that is being read. What reads the file's values reports each
// problem with [value.Fail] and reads on, so that all problems are shown at once.
type document struct {
	file     string
	problems []Problem
	warnings []Problem           // see value.Warn
	about    string              // what further messages begin with
	refused  map[string]bool     // paths of keys with a reported problem, see value.Refused
	expanded map[*yaml.Node]bool // texts whose references expandTexts has replaced
	unread   map[*yaml.Node]bool // texts whose references expandTexts could not replace
	redact   []func(string) string
}

// Redact makes Err pass every text of the problems through rewrite, which takes a secret out.
// A file may repeat a secret in any of its values.
func (d *document) Redact(rewrite func(string) string) { d.redact = append(d.redact, rewrite) }

// readDocument reads and parses a YAML file of at most 1 MiB. It returns the document and its
// root value. If the file cannot be read, is empty or is no YAML, the error is an *Error.
func readDocument(file string) (*document, value, error) {
	data, err := readFile(file, maxDocument)
	if err != nil {
		remedy := "check the path, and who may read the file"
		if errors.Is(err, errTooLong) {
			remedy = "give a definition or a schema file (YAML), not a file of results"
		}
		if beside, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*.y*ml")); errors.Is(err, fs.ErrNotExist) {
			remedy = cmp.Or(plain.Suggest(file, beside), remedy)
		}
		return nil, value{}, &Error{File: file, Err: err, Problems: []Problem{{Message: fmt.Sprintf("the file cannot be read: %v", err), Remedy: remedy}}}
	}
	switch stem, _ := load.SplitCodec(strings.ToLower(file)); filepath.Ext(stem) {
	case ".csv", ".tsv", ".ndjson", ".jsonl", ".parquet", ".arrow", ".xlsx":
		return nil, value{}, (&document{file: file}).WrongFile("this is a file of results, by its name", "give a definition or a schema file (YAML); `formetl init` writes both")
	}
	return parseDocument(file, data)
}

// parseDocument parses data, the bytes of a YAML file, as readDocument does.
func parseDocument(file string, data []byte) (*document, value, error) {
	d := &document{file: file, refused: map[string]bool{}, expanded: map[*yaml.Node]bool{}, unread: map[*yaml.Node]bool{}}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	err := decoder.Decode(&first)
	if errors.Is(err, io.EOF) {
		d.report(nil, "", "the file is empty", "`formetl init` writes a definition and its schema files")
		return nil, value{}, d.Err()
	}
	if err == nil {
		err = decoder.Decode(&second)
	}
	switch {
	case err == nil:
		d.report(second.Content[0], "", "the file holds more than one YAML document (a line --- begins another)", "put each into its own file")
	case !errors.Is(err, io.EOF):
		d.problems = append(d.problems, syntaxProblem(err))
	}
	if err := d.Err(); err != nil {
		return nil, value{}, err
	}
	return d, value{doc: d, node: followed(first.Content[0])}, nil
}

// report notes a problem at the line and column of a node, or at 1:1 if n is nil.
func (d *document) report(n *yaml.Node, key, message, remedy string) {
	d.problems = append(d.problems, d.problemAt(n, key, message, remedy))
}

func (d *document) problemAt(n *yaml.Node, key, message, remedy string) Problem {
	p := Problem{Line: 1, Column: 1, Key: key, Message: d.about + message, Remedy: remedy}
	if n != nil {
		p.Line, p.Column = max(n.Line, 1), max(n.Column, 1)
	}
	return p
}

// Err returns all problems of the document as one *Error, in the order of the file, with
// secrets redacted. It is nil if there are no problems.
func (d *document) Err() error {
	if len(d.problems) == 0 {
		return nil
	}
	return &Error{File: d.file, Problems: d.ready(d.problems)}
}

// ready puts problems into the order of the file and takes secrets out of them.
func (d *document) ready(problems []Problem) []Problem {
	for i := range problems {
		p := &problems[i]
		for _, rewrite := range d.redact {
			p.Key, p.Message, p.Remedy = rewrite(p.Key), rewrite(p.Message), rewrite(p.Remedy)
		}
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		if (a.File == "") != (b.File == "") { // another file's problems come last
			return cmp.Compare(a.File, b.File)
		}
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	return slices.Compact(problems) // expandTexts and the reader of a section may find the same
}

// WrongFile returns an *Error for a file that is not of the expected kind, such as a schema file
// in place of a definition. The text what says of which kind the file is.
func (d *document) WrongFile(what, remedy string) error {
	return &Error{File: d.file, Problems: []Problem{{Line: 1, Column: 1, Message: what, Remedy: remedy}}, Cure: "nothing in " + d.file + " needs a change: run the same command with the right file"}
}

// syntaxProblem says in the YAML parser's words why a file is no YAML. The parser's messages
// quote nothing of the file but the names of anchors, which are left out here.
func syntaxProblem(err error) Problem {
	p := Problem{Line: 1, Column: 1, Remedy: "check quotes, brackets and indentation (by spaces, not tabs) from here on; put quotes around a value that contains {, }, [, ], #, or a colon and a space"}
	what := strings.TrimPrefix(err.Error(), "yaml: ")
	placed, _ := fmt.Sscanf(what, "line %d:", &p.Line)
	if placed == 1 {
		_, what, _ = strings.Cut(what, ": ")
	}
	switch {
	case strings.HasPrefix(what, "mapping values are not"), strings.HasPrefix(what, "could not find expected ':'"):
		what = "a setting and its value cannot be told apart, on this line or the one before"
		p.Remedy = "write a space after the colon of each setting, as in version: 1, and quotes around a value that contains a colon and a space; also check indentation (by spaces, not tabs)"
	case strings.HasPrefix(what, "found character that cannot start"):
		what = "a tab, @, ` or % begins a line or value here"
	case strings.HasPrefix(what, "unknown anchor"):
		what = "an alias (*name) has no anchor (&name) in this file"
	case strings.HasPrefix(what, "did not find expected"):
		// The parser's line is where the unclosed group or list begins, counted from 0.
		p.Line, what = p.Line+placed, what+", in the group or list that begins here"
	}
	p.Message = "this is not valid YAML: " + what
	return p
}

// followed returns the node that n stands for if n is a YAML alias, else n itself.
func followed(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

var errTooLong = errors.New("it is longer")

// readFile reads a file of at most limit bytes. The error does not repeat the file's path.
func readFile(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file) //nolint:gosec // the user names the file
	var data []byte
	if err == nil {
		defer func() { _ = f.Close() }() // nothing is lost: the file was opened for reading only
		data, err = io.ReadAll(io.LimitReader(f, limit+1))
	}
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		return nil, failed.Err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%w than %d bytes", errTooLong, limit)
	}
	return data, err
}
