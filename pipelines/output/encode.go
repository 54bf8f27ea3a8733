package output

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// encoding writes windows from the checkpoint in the format of one output.
type encoding struct {
	job    *Job
	out    definition.Output
	format load.Format
	// snapshot is what is encoded. It is nil before the output is staged.
	snapshot *reconcile.Snapshot
}

// extension returns the extension of the output's data objects, for example ".csv.gz".
func (e *encoding) extension() string {
	if e.format.Text {
		return e.format.Extension + load.CompressionExtension(e.out.Compression)
	}
	return e.format.Extension
}

// encodedObject is an object that is being encoded. For text formats, the
// encoder writes to a compressor.
type encodedObject struct {
	load.Encoder
	schema     *arrow.Schema
	compressed io.WriteCloser
}

// Write writes the rows of a batch, which has the object's columns.
func (o encodedObject) Write(batch arrow.RecordBatch) error {
	if !batch.Schema().Equal(o.schema) {
		return fmt.Errorf("the batch has the columns %s, not %s: this is a bug in formetl", batch.Schema(), o.schema)
	}
	for i, f := range o.schema.Fields() {
		if n := batch.Column(i).NullN(); n > 0 && !f.Nullable {
			return fmt.Errorf("column %q holds %d nulls and was declared to hold none: this is a bug in formetl", f.Name, n)
		}
	}
	return o.Encoder.Write(batch)
}

// Close writes the end of the object. It does not close the writer under the compressor.
func (o encodedObject) Close() error {
	return errors.Join(o.Encoder.Close(), o.compressed.Close())
}

// discard ends the encoding and keeps nothing of the object.
func (o encodedObject) discard() {
	if o.Encoder != nil {
		load.Discard(o.Encoder)
	}
}

// object begins an object that is written to w. span describes the object's windows in its
// footer, which names neither the run nor a time, so that equal results give equal bytes.
func (e *encoding) object(w io.Writer, columns []schemas.Column, span fmt.Stringer) (encodedObject, error) {
	schema := schemas.ArrowSchema(columns)
	if err := load.CheckSchema(schema); err != nil {
		return encodedObject{}, fmt.Errorf("%s: %w", e.format.Name, err)
	}
	inner, outer := e.out.Compression, "none"
	if e.format.Text {
		inner, outer = "", e.out.Compression
	}
	compressed, err := load.Compress(w, outer)
	if err != nil {
		return encodedObject{}, err
	}
	described, err := json.Marshal(manifestColumns(columns, e.snapshot.Schema.HMACKey))
	if err != nil {
		return encodedObject{}, err
	}
	encoder, err := e.format.New(compressed, schema, load.EncodeOptions{
		Zone: e.job.Def.Source.Zone, Profile: e.out.Profile, Compression: inner, Guarded: e.job.Guarded,
		Metadata: []load.KeyValue{
			{Key: "formetl.pipeline", Value: e.job.Def.Name},
			{Key: "formetl.form", Value: e.job.Form},
			{Key: "formetl.window", Value: span.String()},
			{Key: "formetl.schema", Value: string(described)},
		},
	})
	return encodedObject{encoder, schema, compressed}, err
}

// each calls visit with the batches of the windows from the checkpoint, in order and
// with all columns. A batch is valid only during the call.
func (e *encoding) each(ctx context.Context, columns []schemas.Column, windows []*reading.Window, visit func(arrow.RecordBatch) error) error {
	schema := schemas.ArrowSchema(columns)
	for _, w := range windows {
		if e.out.HasFileRows() {
			if err := e.job.Files.Rows(ctx, e.snapshot, w, schema, visit); err != nil {
				return err
			}
			continue
		}
		err := e.snapshot.Rows(ctx, w, func(b arrow.RecordBatch) error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return e.conform(b, schema, visit)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// conform calls visit with the rows of a batch in the output's columns. For a child output it
// makes a row of each list element.
func (e *encoding) conform(b arrow.RecordBatch, schema *arrow.Schema, visit func(arrow.RecordBatch) error) error {
	if e.out.Exploded() {
		x, err := newExplosion(b, e.out.Explode, schema)
		if err != nil {
			return err
		}
		return x.each(mostExploded, visit)
	}
	if e.out.Select != nil {
		b = transform.Narrow(b, schema)
		defer b.Release()
	}
	whole, err := transform.Conform(b, schema, nil)
	if err != nil {
		return err
	}
	defer whole.Release()
	return visit(whole)
}

// manifestColumns describes columns in the form that manifests have. key is the key of
// pii: hmac rules.
func manifestColumns(columns []schemas.Column, key schemas.HMACKey) []load.Column {
	list := make([]load.Column, 0, len(columns))
	for _, c := range columns {
		list = append(list, load.Column{Name: c.Name, Type: c.Type.String(), From: c.From.String(), Label: c.Label, PII: ruleOf(c, key), ListAs: listRule(c), Choices: c.Choices})
	}
	return list
}

// ownColumns returns the output's columns for the results in windows, and the statistics of
// these results.
func (p *place) ownColumns(ctx context.Context, windows []*reading.Window) ([]schemas.Column, transform.Stats, error) {
	stats, err := p.snapshot.StatsOf(ctx, windows)
	if err != nil {
		return nil, stats, err
	}
	columns, err := p.shown(windows, stats.Seen)
	return columns, stats, err
}

// newManifest returns a manifest with the fields that all manifests have. own means that the
// manifest is about the range that was asked for, and not that range widened to whole parts.
func (p *place) newManifest(columns []schemas.Column, windows []*reading.Window, own bool) load.Manifest {
	j, s, before := p.job, p.snapshot, p.manifest
	if p.out.Exploded() {
		before = elements(before)
	}
	described := manifestColumns(columns, s.Schema.HMACKey)
	seen := FormSeen{Columns: columns, Labels: s.Labels, Stats: s.Stats}
	seen.describe(described, before)
	if p.out.Exploded() {
		described[positionAt] = manifestColumns(columns[positionAt:positionAt+1], schemas.HMACKey{})[0] // the form lacks this column
	}
	m := load.Manifest{
		Format: p.format.Name, Pipeline: j.Def.Name, Form: j.Form, RunID: j.RunID, CreatedAt: j.Now(),
		Range: load.Span(s.Interval.Read.From, s.Interval.Read.To), Schema: described, Ignored: seen.leftOut(before), Names: j.naming(), Source: j.source(), Profile: profileRule(p.out.Profile),
		Rejected: rejectsOf(windows), Verified: s.Verified, Requests: j.Requests(), Files: j.Def.Files != nil,
	}
	if own {
		m.Range, m.Verified = load.Span(s.Interval.Asked.From, s.Interval.Asked.To), s.VerifiedOwn
	}
	return m
}

// source describes in a manifest which results the run reads.
func (j *Job) source() load.Source {
	e := j.Def.Extract
	return load.Source{
		Account: j.Def.Source.Account, Timezone: j.Def.Source.Zone.String(), View: e.View, Search: e.Search.String(),
	}
}
