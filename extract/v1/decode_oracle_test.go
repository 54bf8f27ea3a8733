package v1

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// The oracle decodes answers a second time, over encoding/xml and by a
// grammar of its own that works on a tree, to hold the decoder to.

// plainPage is a decoded answer without views, to be compared.
type plainPage struct {
	Headings []page.Heading
	Fields   []page.Field
	Results  []plainResult
}

type plainResult struct {
	ID    int64
	Cells []plainCell
}

type plainCell struct {
	Kind   page.Kind
	ID     string
	Values []string
}

// plain copies a page.
func plain(p *page.Page) plainPage {
	out := plainPage{Headings: append([]page.Heading(nil), p.Headings...), Fields: append([]page.Field(nil), p.Fields...)}
	for i := range p.Len() {
		r := plainResult{ID: p.ID(i)}
		for _, c := range p.Cells(i) {
			f := p.Fields[c.Field]
			cell := plainCell{Kind: f.Kind, ID: f.ID}
			for v := range int(c.Values) {
				cell.Values = append(cell.Values, string(p.Value(c, v)))
			}
			r.Cells = append(r.Cells, cell)
		}
		out.Results = append(out.Results, r)
	}
	return out
}

// oracleNode is an element; its content holds strings and *oracleNodes.
type oracleNode struct {
	name    string
	attrs   []xml.Attr
	content []any
}

func (n *oracleNode) attr(name string) (string, bool) {
	for _, a := range n.attrs {
		if a.Name.Space == "" && a.Name.Local == name {
			return a.Value, true
		}
	}
	return "", false
}

func (n *oracleNode) text() string {
	var b strings.Builder
	for _, c := range n.content {
		if t, ok := c.(string); ok {
			b.WriteString(t)
		}
	}
	return b.String()
}

// allText is the text of the element with that of the markup in it.
func (n *oracleNode) allText() string {
	var b strings.Builder
	for _, c := range n.content {
		switch c := c.(type) {
		case string:
			b.WriteString(c)
		case *oracleNode:
			b.WriteString(c.allText())
		}
	}
	return b.String()
}

func (n *oracleNode) children() (found []*oracleNode) {
	for _, c := range n.content {
		if e, ok := c.(*oracleNode); ok {
			found = append(found, e)
		}
	}
	return found
}

// oracleTree reads all of data by encoding/xml. It returns a node that holds
// what stands on the top level, because encoding/xml reads streams and not
// documents.
func oracleTree(data []byte) (*oracleNode, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	d := xml.NewDecoder(bytes.NewReader(data))
	path := []*oracleNode{{}}
	for {
		before := d.InputOffset()
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return path[0], nil
		}
		if err != nil {
			return nil, err
		}
		top := path[len(path)-1]
		switch t := token.(type) {
		case xml.StartElement:
			// Token resolves prefixes; the decoder compares names as they are written.
			raw := data[before+1:]
			name := raw[:bytes.IndexAny(raw, " \t\r\n/>")]
			n := &oracleNode{name: string(name), attrs: t.Copy().Attr}
			top.content = append(top.content, n)
			path = append(path, n)
		case xml.EndElement:
			path = path[:len(path)-1]
		case xml.CharData:
			top.content = append(top.content, string(t))
		}
	}
}

var errOracle = errors.New("the oracle refuses the answer")

// oraclePage reads an answer of Get Results from the tree.
func oraclePage(top *oracleNode) (page plainPage, err error) {
	roots := top.children()
	if len(roots) != 1 || strings.Trim(top.text(), " \t\n\r") != "" {
		return page, errOracle
	}
	root := roots[0]
	status, _ := root.attr("status")
	if root.name != "fs_response" && root.name != "fs_result" || status != "success" && status != "error" {
		return page, errOracle
	}
	if status == "error" {
		return page, oracleError(root)
	}
	results := 0
	o := oracleReader{fields: map[plainKey]bool{}}
	for _, c := range root.children() {
		switch c.name {
		case "headings":
			o.headings(c, 0)
		case "results":
			results++
			o.results(c)
		}
	}
	if results != 1 || o.failed {
		return page, errOracle
	}
	return o.page, nil
}

func oracleError(root *oracleNode) error {
	e := &transport.ServiceError{Code: -1}
	for _, c := range root.children() {
		if c.name != "error" {
			continue
		}
		e.Code = -1
		code, _ := c.attr("code")
		if n, err := strconv.Atoi(strings.TrimSpace(code)); err == nil {
			e.Code = n
		}
		e.Message = strings.TrimSpace(c.text())
	}
	return e
}

type plainKey struct {
	kind page.Kind
	id   string
}

type oracleReader struct {
	page   plainPage
	fields map[plainKey]bool
	failed bool
}

func (o *oracleReader) headings(n *oracleNode, group page.Kind) {
	for _, c := range n.children() {
		kind := map[string]page.Kind{"metas": page.KindMeta, "items": page.KindItem, "meta": page.KindMeta, "item": page.KindItem, "heading": group}
		k, known := kind[c.name]
		if !known {
			continue
		}
		if c.name == "metas" || c.name == "items" {
			o.headings(c, k)
			continue
		}
		id, ok := c.attr("for")
		if !ok {
			id, _ = c.attr("id")
		}
		if id != "" {
			o.page.Headings = append(o.page.Headings, page.Heading{ID: id, Label: page.PlainLabel(c.allText()), Kind: k})
		}
	}
}

func (o *oracleReader) results(n *oracleNode) {
	for _, c := range n.children() {
		if c.name == "headings" {
			o.headings(c, 0)
		}
		if c.name != "result" {
			continue
		}
		text, _ := c.attr("id")
		text = strings.Trim(text, " \t\r\n")
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || text[0] == '+' || text[0] == '-' {
			o.failed = true
			return
		}
		r := plainResult{ID: id}
		for _, group := range c.children() {
			for _, e := range group.children() {
				if group.name == e.name+"s" && (e.name == "meta" || e.name == "item") {
					r.Cells = append(r.Cells, o.cell(e))
				}
			}
		}
		o.page.Results = append(o.page.Results, r)
	}
}

func (o *oracleReader) cell(e *oracleNode) plainCell {
	id, _ := e.attr("id")
	if id == "" {
		o.failed = true
	}
	f := page.Field{Kind: page.KindMeta, ID: id}
	var values []string
	if e.name == "meta" {
		values = []string{e.allText()}
	} else {
		f.Kind = page.KindItem
		f.Type, _ = e.attr("type")
		index, _ := e.attr("index")
		if n, err := strconv.Atoi(strings.Trim(index, " \t\r\n")); err == nil {
			f.Index = n
		}
		for _, v := range e.children() {
			if v.name == "value" {
				values = append(values, v.allText())
			}
		}
		if text := e.allText(); values == nil && strings.Trim(text, " \t\r\n") != "" {
			values = []string{text}
		}
	}
	if key := (plainKey{f.Kind, id}); !o.fields[key] {
		o.fields[key] = true
		o.page.Fields = append(o.page.Fields, f)
	}
	return plainCell{f.Kind, id, values}
}
