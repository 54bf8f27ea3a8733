package strictyaml

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a file. They are far beyond what anybody writes, and they keep the
// recursion of the YAML parser shallow.
const (
	maxDocument = 1 << 20 // bytes
	maxNesting  = 64
)

// Document is a YAML file that is being read. Readers of its values report each
// problem with [Value.Fail] and read on, so that one look shows all problems.
type Document struct {
	file     string
	problems []Problem
	refused  map[string]bool // paths of values that a problem was reported for, see Value.Refused
	anchors  map[string]ast.Node
	expanded map[ast.Node]bool // texts that Expand has replaced
	unread   map[ast.Node]bool // texts that Expand could not replace
	redact   []func(string) string
}

// File is the path that the document was read from.
func (d *Document) File() string { return d.file }

// Redact makes Err rewrite every text of the problems. A file may repeat a secret
// where nobody expects it.
func (d *Document) Redact(rewrite func(string) string) { d.redact = append(d.redact, rewrite) }

// Read reads and parses a file of at most 1 MiB. It returns the root value. Where
// the file has none, the error is an *Error.
func Read(file string) (*Document, Value, error) {
	data, err := ReadFile(file, maxDocument)
	if err != nil {
		return nil, Value{}, &Error{File: file, Err: err, Problems: []Problem{{
			Message: fmt.Sprintf("the file cannot be read: %v", err), Remedy: "give the path of a file that exists and may be read",
		}}}
	}
	return Parse(file, data)
}

// Parse parses the bytes of a file, as [Read] does.
func Parse(file string, data []byte) (*Document, Value, error) {
	d := &Document{
		file: file, refused: map[string]bool{}, anchors: map[string]ast.Node{}, expanded: map[ast.Node]bool{}, unread: map[ast.Node]bool{},
	}
	node, problem := parseYAML(data)
	if problem != nil {
		d.problems = append(d.problems, *problem)
		return nil, Value{}, d.Err()
	}
	for _, n := range ast.Filter(ast.AnchorType, node) {
		if a, ok := n.(*ast.AnchorNode); ok && a.Name != nil && a.Value != nil {
			d.anchors[a.Name.GetToken().Value] = a.Value
		}
	}
	return d, Value{doc: d, node: d.resolve(node)}, nil
}

// Err returns all problems as one *Error in the order of the file, nil if there are
// none.
func (d *Document) Err() error {
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
func (d *Document) Wrong(what, remedy string) error {
	return &Error{File: d.file, Problems: []Problem{{Line: 1, Column: 1, Message: what, Remedy: remedy}}}
}

// parseYAML returns the body of the only document in data. It keeps the parser's
// messages without their excerpts of the source, which may show the API key.
func parseYAML(data []byte) (body ast.Node, problem *Problem) {
	defer func() {
		// A panic in the parser counts as bad YAML.
		if recover() != nil {
			body, problem = nil, &Problem{Line: 1, Column: 1, Message: "the file cannot be read as YAML", Remedy: "check quotes, brackets and indentation"}
		}
	}()
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	tokens := lexer.Tokenize(string(data))
	if tk := tooDeep(tokens); tk != nil {
		return nil, at(tk, Problem{Message: fmt.Sprintf("the file nests deeper than %d levels", maxNesting), Remedy: "write it flatter"})
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntaxProblem(err)
	}
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil || doc.Body.Type() == ast.DirectiveType || doc.Body.Type() == ast.CommentType {
			continue
		}
		if body != nil {
			return nil, at(doc.Body.GetToken(), Problem{Message: "the file holds more than one YAML document", Remedy: "put each into a file of its own"})
		}
		body = doc.Body
	}
	if body == nil {
		return nil, &Problem{Line: 1, Column: 1, Message: "the file is empty", Remedy: "see pipelines/examples for a file to begin with"}
	}
	return body, nil
}

// tooDeep returns the first token that is nested too deeply, else nil. It counts
// brackets, and the sequences, keys and tags that one line opens.
func tooDeep(tokens token.Tokens) *token.Token {
	flow, line, opened := 0, 0, 0
	for _, tk := range tokens {
		if tk.Position != nil && tk.Position.Line != line {
			line, opened = tk.Position.Line, 0
		}
		switch tk.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType, token.MergeKeyType:
			opened++
		}
		// Every level of a block needs a deeper indentation on a line of its own.
		if flow > maxNesting || opened > maxNesting || (tk.Position != nil && tk.Position.IndentLevel > maxNesting) {
			return tk
		}
	}
	return nil
}

func syntaxProblem(err error) *Problem {
	p := Problem{Line: 1, Column: 1, Remedy: "check quotes, brackets and indentation near here; put a value that holds {, }, [, ], # or a colon and a blank in quotes"}
	var yamlErr yaml.Error
	if !errors.As(err, &yamlErr) {
		p.Message = "this is not YAML"
		return &p
	}
	reason, _, _ := strings.Cut(yamlErr.GetMessage(), `"`) // what the parser quotes may be a secret
	p.Message = "this is not YAML: " + strings.TrimSpace(reason)
	return at(yamlErr.GetToken(), p)
}

// at sets a problem's line and column to those of a token; 1 and 1 without one.
func at(tk *token.Token, p Problem) *Problem {
	p.Line, p.Column = 1, 1
	if tk != nil && tk.Position != nil {
		p.Line, p.Column = max(tk.Position.Line, 1), max(tk.Position.Column, 1)
	}
	return &p
}

// resolve follows anchors and aliases to the node that they stand for. An
// alias without an anchor, or one that leads to itself, stays an alias.
func (d *Document) resolve(n ast.Node) ast.Node {
	for range maxNesting {
		switch x := n.(type) {
		case *ast.AnchorNode:
			n = x.Value
		case *ast.AliasNode:
			target, ok := d.anchors[x.Value.GetToken().Value]
			if !ok {
				return n
			}
			n = target
		default:
			return n
		}
	}
	return n
}
