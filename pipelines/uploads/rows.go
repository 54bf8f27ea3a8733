package uploads

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
)

// result is a result that has links to files, or had some.
type result struct {
	id      int64
	updated string // its date_update as text, "" if that is not read
	links   []link
}

// link is a value that is the link of an uploaded file.
type link struct {
	item string
	n    int
	url  *url.URL
}

// place returns where the file lies in the folder.
func (l link) place(id int64) string {
	return fmt.Sprintf("%d/%s-%d-%s", id, schemas.Cut(safe(l.item), mostItem), l.n, safeName(l.url))
}

// safeName returns the name of a file: the last element of its link, made safe. A name that is
// too long loses its middle, and keeps its extension.
func safeName(u *url.URL) string {
	name := path.Base(u.EscapedPath())
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	if name = safe(name); len(name) <= mostName {
		return name
	}
	end := len(name) - 20
	for !utf8.RuneStart(name[end]) {
		end++
	}
	return schemas.Cut(name, mostName-20) + name[end:]
}

// each calls visit with the results of a window that have links to files, and those that have an
// entry although they have none any more, batch by batch.
func (f *Folder) each(ctx context.Context, s *reconcile.Snapshot, w *reading.Window, visit func([]result) error) error {
	return s.Rows(ctx, w, func(b arrow.RecordBatch) error {
		links := f.linksIn(b)
		var results []result
		ids, updated := schemas.ColumnFrom(b, schemas.Source{Kind: schemas.FromResultID}), schemas.ColumnFrom(b, schemas.Source{Kind: schemas.FromMeta, ID: page.MetaUpdate})
		if ids == nil { // a schema without the id: nothing to name the files by
			return nil
		}
		for row := range int(b.NumRows()) {
			id, err := strconv.ParseInt(ids.ValueStr(row), 10, 64)
			if err != nil || len(links[row]) == 0 && !f.entries.Contains(id) {
				continue
			}
			r := result{id: id, links: links[row]}
			if updated != nil && updated.IsValid(row) {
				r.updated = updated.ValueStr(row)
			}
			results = append(results, r)
		}
		if len(results) == 0 {
			return nil
		}
		return visit(results)
	})
}

// linksIn returns the links to files in the rows of a batch, by row, in the order of the columns.
func (f *Folder) linksIn(b arrow.RecordBatch) map[int][]link {
	links := map[int][]link{}
	for i, field := range b.Schema().Fields() {
		text, _ := field.Metadata.GetValue(schemas.MetaFrom)
		from, err := schemas.ParseSource(text)
		if err != nil || from.Kind != schemas.FromItem || f.hidden[from] || !f.wants(from.ID) {
			continue
		}
		column := b.Column(i)
		texts, _ := column.(*array.String)
		lists, isList := column.(*array.List)
		if isList {
			texts, _ = lists.ListValues().(*array.String)
		}
		if texts == nil || !bytes.Contains(texts.ValueBytes(), []byte("/files/")) {
			continue
		}
		for row := range column.Len() {
			start, end := int64(row), int64(row)+1
			if isList {
				start, end = lists.ValueOffsets(row)
			}
			for k := start; k < end && column.IsValid(row); k++ {
				if u, is := transport.FileLink(texts.Value(int(k))); is {
					links[row] = append(links[row], link{item: from.ID, n: int(k-start) + 1, url: u})
				}
			}
		}
	}
	return links
}

// readAtOnce is how many entries are read at once to make rows of them.
const readAtOnce = 16

// Rows calls visit with the rows of files of a window's results, in the order of the results. The
// schema is that of output.ChildColumns. A batch is valid only during the call.
func (f *Folder) Rows(ctx context.Context, s *reconcile.Snapshot, w *reading.Window, schema *arrow.Schema, visit func(arrow.RecordBatch) error) error {
	return f.each(ctx, s, w, func(results []result) error {
		entries := make([]entry, len(results))
		group, reading := errgroup.WithContext(ctx)
		group.SetLimit(readAtOnce)
		for i, r := range results {
			group.Go(func() (err error) {
				entries[i], err = f.read(reading, r.id)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		defer b.Release()
		for i, r := range results {
			for _, is := range entries[i].Files {
				if is.Status != "" && f.wants(is.Item) {
					appendRow(b, r.id, is)
				}
			}
		}
		rows := b.NewRecordBatch()
		defer rows.Release()
		if rows.NumRows() == 0 {
			return nil
		}
		return visit(rows)
	})
}

// appendRow appends a row in the columns of output.ChildColumns.
func appendRow(b *array.RecordBuilder, id int64, is file) {
	size := ""
	if is.Path != "" {
		size = strconv.FormatInt(is.Bytes, 10)
	}
	for i, value := range []string{strconv.FormatInt(id, 10), is.Item, strconv.Itoa(is.N), is.Name, is.Type, size, is.SHA256, is.Path, string(is.Status)} {
		if column := b.Field(i); value == "" {
			column.AppendNull()
		} else {
			_ = column.AppendValueFromString(value) // numbers are written as they are read
		}
	}
}
