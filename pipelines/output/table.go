package output

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// table is an output in a table of a database, with a table for each exploded list. It is a
// dataset whose parts have no objects: its rows are loaded when the commits of the other
// outputs are recorded, and are visible at once.
type table struct {
	dataset
	load load.TableLoad // what record loads; set once the output is staged
	lost string         // the tables of lists that lack rows; "" if there are none
}

// look finds the table, and reads what the last run left there. It takes no lease.
func (o *table) look(ctx context.Context) (err error) {
	if err = o.locate(ctx); err != nil {
		return err
	}
	if o.manifest, o.base, err = o.table.Last(ctx); err != nil || o.manifest == nil {
		return err
	}
	if err := checkManifest(o.manifest, o.out); err != nil {
		return &load.ManifestError{Name: o.Path, Problem: "a run cannot go on from it", Err: err}
	}
	return nil
}

func (o *table) open(ctx context.Context) (err error) {
	if err = o.look(ctx); err != nil {
		return err
	}
	if err = o.fit(ctx); err != nil {
		return err
	}
	if o.lease, err = o.table.Acquire(ctx, "", o.job.Holder()); err != nil {
		return err
	}
	if o.manifest, o.base, err = o.table.Last(ctx); err == nil { // another run may have ended meanwhile
		err = o.lookAround(ctx)
	}
	if err != nil {
		return errors.Join(err, o.close(context.WithoutCancel(ctx)))
	}
	return nil
}

// lookAround finds the parts and the lists that lack rows.
func (o *table) lookAround(ctx context.Context) error {
	if o.manifest == nil {
		return nil
	}
	lacking, lists, err := o.table.Lacking(ctx, o.manifest)
	o.lost = strings.Join(lists, ", ")
	for _, p := range lacking {
		o.inventory.Damaged = append(o.inventory.Damaged, load.DamagedPart{Part: p, Missing: true})
	}
	return err
}

// explodes tells whether the definition asks for a list that the last load did not write.
func (o *table) explodes() bool {
	if o.job.Def.Files != nil && !o.manifest.Files {
		return true
	}
	lacks := func(c schemas.Column) bool { return c.Explode && !hasList(o.manifest, c.From) }
	return o.job.Def.Schema != nil && slices.ContainsFunc(o.job.Def.Schema.Columns, lacks)
}

// fit returns the error with which the load would fail, as far as the columns are known before
// any result is read.
func (o *table) fit(ctx context.Context) error {
	var columns []schemas.Column
	switch {
	case o.job.Def.Schema != nil:
		columns = o.job.selected((&schemas.Schema{Columns: o.job.Def.Schema.Columns}).Written(), o.out.Select)
	case o.manifest != nil:
		var err error
		if columns, err = ColumnsOf(o.manifest); err != nil {
			return err
		}
	default:
		columns = []schemas.Column{{Name: "result_id", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}}}
	}
	rows, err := o.rows(columns, nil)
	if err != nil {
		return err
	}
	return o.table.Fit(ctx, rows, o.job.Full)
}

// rows returns the rows of the results in the windows of parts, the rows of each exploded list,
// and those of uploaded files.
func (o *table) rows(columns []schemas.Column, parts []*outputPart) (all []load.TableRows, err error) {
	add := func(list string, from schemas.Source, columns []schemas.Column, key ...schemas.Column) {
		e := o.encoding
		e.out.Explode = from
		r := load.TableRows{List: list, Columns: manifestColumns(columns, schemas.HMACKey{}), Schema: schemas.ArrowSchema(columns)}
		for _, c := range key {
			r.Key = append(r.Key, c.Name)
		}
		r.Each = func(ctx context.Context, visit func(arrow.RecordBatch) error) error {
			for _, p := range parts {
				if err := e.each(ctx, columns, p.windows, visit); err != nil {
					return err
				}
			}
			return nil
		}
		all = append(all, r)
	}
	add("", schemas.Source{}, columns)
	for _, c := range columns {
		if !c.Explode {
			continue
		}
		elements, err := ChildColumns(columns, c.From)
		if err != nil {
			return nil, err
		}
		add(c.Name, c.From, elements, elements[positionAt])
	}
	if o.job.Def.Files != nil {
		from := definition.FileRows(o.out).Explode
		files, err := ChildColumns(columns, from)
		if err != nil {
			return nil, err
		}
		add(load.FilesTable, from, files, files[1], files[2]) // item and n
	}
	return all, nil
}

// stage prepares the load of the table. It asks the database for nothing but the ids of
// parts that are replaced.
func (o *table) stage(ctx context.Context, s *reconcile.Snapshot) error {
	o.snapshot = s
	columns, stats, err := o.ownColumns(ctx, s.Windows)
	if err != nil {
		return err
	}
	parts := o.parts(s)
	l := load.TableLoad{Version: o.base, Full: o.job.Full}
	if l.Rows, err = o.rows(columns, parts); err != nil {
		return err
	}
	var fresh []load.Part
	for _, p := range parts {
		part := load.TablePart{Part: load.Part{Path: p.String(), From: load.Wall(p.from), To: load.Wall(p.to), Undated: p.undated, Rejected: rejectsOf(p.windows)}}
		for _, w := range p.windows {
			part.Rows += w.Stats.Rows
		}
		if part.Rows == 0 && part.Rejected == 0 {
			continue
		}
		if part.IDs = p.ids(); part.Rows > 0 {
			part.MinID, part.MaxID = part.IDs.Min(), part.IDs.Max()
		}
		part.Unfetched = o.job.Files != nil && part.IDs.Intersects(o.job.Files.Unfetched())
		if part.Letters, err = o.letters(p); err != nil {
			return err
		}
		fresh, l.Parts = append(fresh, part.Part), append(l.Parts, part)
	}
	replaced, kept := s.Replaced.Divide(o.manifest)
	var sets []idset.Set
	for _, p := range replaced {
		if l.Full {
			break // a full load removes all rows that were not read
		}
		ids, err := o.idsOf(ctx, p)
		if err != nil {
			return fmt.Errorf("the part %s: %w; `%s` writes it again", p.Path, err, o.job.Def.Command("run", "--full"))
		}
		sets = append(sets, ids)
	}
	l.Replaced = idset.Union(sets...)
	l.Manifest = o.wholeManifest(columns, kept, fresh)
	o.describe(&l, stats.Seen)
	o.load, o.staging = l, o.report
	o.staging.holds(&l.Manifest)
	if l.Manifest.Rejected > 0 {
		o.staging.DeadLetters = o.table.LettersTable()
	}
	return nil
}

// describe notes the choices of the columns, for comments in the database: those that the rows
// show, and, unless the load is full, those in the manifest of the load before.
func (o *table) describe(l *load.TableLoad, seen map[schemas.Source]transform.Seen) {
	before := bySource(o.manifest)
	choices := map[string][]string{}
	for i := range l.Manifest.Schema {
		c := &l.Manifest.Schema[i]
		from, _ := schemas.ParseSource(c.From) // a source is read as it was written
		all := slices.Collect(maps.Keys(seen[from].Choices))
		if was := before[c.From]; was != nil && !l.Full {
			if len(was.Choices) == 0 { // the earlier load found no choices, or too many
				continue
			}
			all = append(all, was.Choices...)
		}
		slices.Sort(all)
		if all = slices.Compact(all); !seen[from].Many && len(all) <= mostTold && c.PII == "" {
			c.Choices, choices[c.From+c.Name] = all, all
		}
	}
	for _, r := range l.Rows {
		for i := range r.Columns {
			c := &r.Columns[i]
			c.Choices = choices[c.From+c.Name]
		}
	}
}

// mostTold is how many choices the comment on a database column names at most.
const mostTold = 50

// record loads the rows into the table, which commits them at once. Nothing is left to publish.
func (o *table) record(ctx context.Context) error {
	if err := o.held(); err != nil {
		return err
	}
	o.job.At(PointLoad)
	change, err := o.table.Load(ctx, o.load)
	o.job.At(PointLoaded)
	if err != nil {
		return err
	}
	o.staging.Changed = &change
	o.publish = func(context.Context) error { return nil }
	return nil
}

// CheckTable returns the error with which a load of a table would fail, as far as it is known
// before results are read. It changes nothing.
func CheckTable(ctx context.Context, job *Job, out definition.Output) error {
	o := &table{dataset: dataset{place: newPlace(job, out)}}
	if err := o.look(ctx); err != nil {
		return err
	}
	return o.fit(ctx)
}
