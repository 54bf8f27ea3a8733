package definition

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxDocument bounds a file, in bytes. It is far beyond what anybody writes.
const maxDocument = 1 << 20

// document is a YAML file that is being read. Readers of its values report each
// problem with [value.Fail] and read on, so that one look shows all problems.
type document struct {
	file     string
	problems []Problem
	refused  map[string]bool     // paths of values that a problem was reported for, see value.Refused
	expanded map[*yaml.Node]bool // texts that expandTexts has replaced
	unread   map[*yaml.Node]bool // texts that it could not replace
	redact   []func(string) string
}

// Redact makes Err rewrite every text of the problems. A file may repeat a secret
// where nobody expects it.
func (d *document) Redact(rewrite func(string) string) { d.redact = append(d.redact, rewrite) }

// readDocument reads and parses a file of at most 1 MiB. It returns the root value. Where
// the file has none, the error is an *Error.
func readDocument(file string) (*document, value, error) {
	data, err := readFile(file, maxDocument)
	if err != nil {
		return nil, value{}, &Error{File: file, Err: err, Problems: []Problem{{
			Message: fmt.Sprintf("the file cannot be read: %v", err), Remedy: "give the path of a file that exists and may be read",
		}}}
	}
	return parseDocument(file, data)
}

// parseDocument parses the bytes of a file, as readDocument does.
func parseDocument(file string, data []byte) (*document, value, error) {
	d := &document{file: file, refused: map[string]bool{}, expanded: map[*yaml.Node]bool{}, unread: map[*yaml.Node]bool{}}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var body, another yaml.Node
	err := decoder.Decode(&body)
	if errors.Is(err, io.EOF) {
		return nil, value{}, d.Wrong("the file is empty", "see pipelines/examples for a file to begin with")
	}
	if err == nil {
		err = decoder.Decode(&another)
	}
	switch {
	case err == nil:
		d.report(another.Content[0], "", "the file holds more than one YAML document", "put each into a file of its own")
	case !errors.Is(err, io.EOF):
		d.problems = append(d.problems, syntaxProblem(err))
	}
	if err := d.Err(); err != nil {
		return nil, value{}, err
	}
	return d, value{doc: d, node: followed(body.Content[0])}, nil
}

// report reports a problem at a node. A file may have no node to point at.
func (d *document) report(n *yaml.Node, key, message, remedy string) {
	p := Problem{Line: 1, Column: 1, Key: key, Message: message, Remedy: remedy}
	if n != nil {
		p.Line, p.Column = max(n.Line, 1), max(n.Column, 1)
	}
	d.problems = append(d.problems, p)
}

// Err returns all problems as one *Error in the order of the file, nil if there are
// none.
func (d *document) Err() error {
	if len(d.problems) == 0 {
		return nil
	}
	for i := range d.problems {
		p := &d.problems[i]
		for _, rewrite := range d.redact {
			p.Key, p.Message, p.Remedy = rewrite(p.Key), rewrite(p.Message), rewrite(p.Remedy)
		}
	}
	slices.SortStableFunc(d.problems, func(a, b Problem) int {
		if (a.File == "") != (b.File == "") { // another file's problems come last
			return cmp.Compare(a.File, b.File)
		}
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	return &Error{File: d.file, Problems: d.problems}
}

// Wrong is the error of a file that is something else than what is expected.
func (d *document) Wrong(what, remedy string) error {
	return &Error{File: d.file, Problems: []Problem{{Line: 1, Column: 1, Message: what, Remedy: remedy}}}
}

// syntaxProblem says in the parser's words what is no YAML. They quote nothing of the file
// but the names of anchors.
func syntaxProblem(err error) Problem {
	p := Problem{Line: 1, Column: 1, Remedy: "check quotes, brackets and indentation near here; put a value that holds {, }, [, ], # or a colon and a blank in quotes"}
	what := strings.TrimPrefix(err.Error(), "yaml: ")
	placed, _ := fmt.Sscanf(what, "line %d:", &p.Line)
	if placed == 1 {
		_, what, _ = strings.Cut(what, ": ")
	}
	switch {
	case strings.HasPrefix(what, "unknown anchor"):
		what = "an alias has no anchor in this file"
	case strings.HasPrefix(what, "did not find expected"): // the line is that of what is open, counted from 0
		p.Line, what = p.Line+placed, what+", in what begins here"
	}
	p.Message = "this is not YAML: " + what
	return p
}

// followed returns the node that an alias stands for, or the node itself.
func followed(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// readFile reads a file of at most limit bytes. The error does not repeat the file's path.
func readFile(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file) //nolint:gosec // the user names it
	var data []byte
	if err == nil {
		defer func() { _ = f.Close() }() // opened for reading only
		data, err = io.ReadAll(io.LimitReader(f, limit+1))
	}
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		return nil, failed.Err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("it is longer than %d bytes", limit)
	}
	return data, err
}
