package pipelines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// encoding writes windows from the spool in the format of one output.
type encoding struct {
	f      *formRun
	out    Output
	format load.Format
}

func (f *formRun) encodingOf(out Output) (encoding, error) {
	format, ok := f.o.Tables.format(out.Format)
	if !ok {
		return encoding{}, &UnsupportedError{What: fmt.Sprintf("the format %q", out.Format), Remedy: "choose one of those that `formetl run --help` lists"}
	}
	return encoding{f: f, out: out, format: format}, nil
}

// extension is that of the output's data objects: ".csv.gz", for instance.
func (e encoding) extension() string {
	if e.format.Text {
		return e.format.Extension + load.CompressionExtension(e.out.Compression)
	}
	return e.format.Extension
}

// encodedObject is an object being encoded: an encoder over a compressor
// where the format is text.
type encodedObject struct {
	load.Encoder
	compressed io.WriteCloser
}

// Close ends the object's bytes; what they go to stays open.
func (o encodedObject) Close() error {
	return errors.Join(o.Encoder.Close(), o.compressed.Close())
}

// object begins an object that is written to w. span is what its footer says
// of its windows.
func (e encoding) object(w io.Writer, columns []schemas.Column, span fmt.Stringer) (encodedObject, error) {
	inner, outer := e.out.Compression, "none"
	if e.format.Text {
		inner, outer = "", e.out.Compression
	}
	compressed, err := load.Compress(w, outer)
	if err != nil {
		return encodedObject{}, err
	}
	metadata, err := e.metadata(columns, span.String())
	if err != nil {
		return encodedObject{}, err
	}
	encoder, err := e.format.New(compressed, schemas.ArrowSchema(columns), load.EncodeOptions{
		Zone: e.f.def.Source.Zone, Profile: e.out.Profile, Compression: inner, Metadata: metadata,
	})
	return encodedObject{encoder, compressed}, err
}

// each gives the windows' batches from the spool, in their order and with all
// columns. A batch is valid during the call.
func (e encoding) each(ctx context.Context, columns []schemas.Column, windows []*windowRun, visit func(arrow.RecordBatch) error) error {
	schema := schemas.ArrowSchema(columns)
	for _, w := range windows {
		switch {
		case w.segment == nil && w.stats.Rows > 0:
			return fmt.Errorf("the results of the window %s are not in the spool", w.name()) // a bug
		case w.segment == nil:
			continue
		}
		err := w.segment.each(func(b arrow.RecordBatch) error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			whole, err := transform.Conform(b, schema, nil)
			if err != nil {
				return err
			}
			defer whole.Release()
			return visit(whole)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// encode writes the windows as one object to w.
func (e encoding) encode(ctx context.Context, w io.Writer, columns []schemas.Column, windows []*windowRun, span fmt.Stringer) error {
	object, err := e.object(w, columns, span)
	if err != nil {
		return err
	}
	if err := e.each(ctx, columns, windows, object.Write); err != nil {
		return err
	}
	return object.Close()
}

// metadata is what a file's footer says of it: nothing of the run or the
// time, so that equal results give equal bytes.
func (e encoding) metadata(columns []schemas.Column, window string) ([]load.KeyValue, error) {
	schema, err := json.Marshal(manifestColumns(columns))
	if err != nil {
		return nil, err
	}
	return []load.KeyValue{
		{Key: "formetl.pipeline", Value: e.f.def.Name},
		{Key: "formetl.form", Value: e.f.form},
		{Key: "formetl.window", Value: window},
		{Key: "formetl.schema", Value: string(schema)},
	}, nil
}

func manifestColumns(columns []schemas.Column) []load.Column {
	list := make([]load.Column, 0, len(columns))
	for _, c := range columns {
		list = append(list, load.Column{Name: c.Name, Type: c.Type.String(), From: c.From.String(), Label: c.Label})
	}
	return list
}

// stage encodes the windows into one staged object.
func (e encoding) stage(ctx context.Context, d load.Stager, name string, columns []schemas.Column, windows []*windowRun, span fmt.Stringer) (load.Prepared, error) {
	upload, err := d.Stage(ctx, e.f.runID, name)
	if err != nil {
		return load.Prepared{}, err
	}
	defer func() { _ = upload.Abort() }()
	if err := e.encode(ctx, upload, columns, windows, span); err != nil {
		return load.Prepared{}, fmt.Errorf("%s: %w", name, err)
	}
	e.f.at(pointStaged)
	return upload.Prepare(ctx)
}

// newManifest fills in what every output's manifest says. before is that of the
// run before, nil where there was none; own tells that it is about the range that was asked for, not the one widened to whole parts.
func (e encoding) newManifest(columns []schemas.Column, windows []*windowRun, before *load.Manifest, own bool) load.Manifest {
	f := e.f
	m := load.Manifest{
		Format: e.format.Name, Pipeline: f.def.Name, Form: f.form, RunID: f.runID, CreatedAt: f.o.Now(),
		Range: wallRange(f.rng), Schema: f.describe(columns, before), Names: f.naming(), Source: f.source(),
		Verified: f.verified(windows, own), Requests: f.requests(),
	}
	if own {
		m.Range = wallRange(f.own)
	}
	if f.runID != f.o.RunID {
		m.Attempt = f.o.RunID
	}
	for _, w := range windows {
		m.Rejected += w.stats.Rejected
	}
	return m
}

// source says in a manifest which results the run reads.
func (f *formRun) source() *load.Source {
	e := f.def.Extract
	return &load.Source{
		Account: f.def.Source.Account, Timezone: f.def.Source.Zone.String(), View: e.View, Search: e.Search.String(),
	}
}

func wallRange(w extract.Window) load.Range {
	return load.Range{From: load.Wall(w.From), To: load.Wall(w.To)}
}

// rejectLine is one line of the dead letters.
type rejectLine struct {
	ResultID int64  `json:"result_id"`
	Column   string `json:"column"`
	Raw      string `json:"raw"`
	Reason   string `json:"reason"`
	Window   string `json:"window"`
}

// deadLetters are the rejected results of the windows as lines of JSON, nil
// if there are none.
func deadLetters(windows []*windowRun) ([]byte, error) {
	var lines []byte
	for _, w := range windows {
		for _, r := range w.rejects {
			line, err := json.Marshal(rejectLine{r.ResultID, r.Column, r.Raw, r.Reason, w.name()})
			if err != nil {
				return nil, err
			}
			lines = append(append(lines, line...), '\n')
		}
	}
	return lines, nil
}
