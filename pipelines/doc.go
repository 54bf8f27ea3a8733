// Package pipelines runs pipeline definitions, their forms side by side.
//
// A definition is planned into windows; windows are read into a checkpoint; what
// was read is reconciled with the service's counts; every output is staged from
// the same snapshot; a run commits its outputs once. Each step is a room:
//
//   - account gives the client and the forms.
//   - output opens the destinations, takes their leases and finishes commits that
//     a dead run recorded (output.Set.Open).
//   - reading decides which span is read and where the next run begins (reading.Interval).
//   - reconcile asks the service which results changed since earlier runs, so that an
//     incremental run reads only the parts that hold them (reconcile.AskChanges).
//   - reading divides the span into windows and reads them, piece by piece, into
//     the checkpoint (reading.Form.NewPlan, reading.Reader.Read).
//   - reconcile has windows and older parts read again until they agree with the
//     counts, with each other and with what changed, and gives a snapshot.
//   - output stages and commits the snapshot (output.Set.Commit).
//
// One result goes this way. Get Results answers with a page that holds it
// (extract.WindowReader, page.Page). A transform.Flattener makes it a row of a
// record batch, or a reject. The batch and the result's id become part of a piece
// of the checkpoint (checkpoint.Writer). Once all windows agree, the piece's rows
// are read back in ascending order of id (reconcile.Snapshot.Rows), encoded into
// a part, and prepared at the destination (load.Upload). The manifest lists the
// part when its commit is published (load.Commit).
//
// The package knows no concrete format or destination: those come in tables that
// the command line builds. It writes no file itself. Rooms beside the run are infer,
// which proposes schemas, maintain, which looks after what runs leave, doctor and verify.
//
// Begin reading with Run, then runForm and formRun.run.
package pipelines

import "embed"

// Docs are the topics of the documentation on definitions and their runs, as Markdown.
//
//go:embed *.md
var Docs embed.FS

// DefinitionSchema is the JSON Schema (draft 2020-12) of definitions, for editors. It
// accepts more than [definition.Load] does: what depends on the machine, on other keys or
// on the build is not in it.
//
//go:embed definition.schema.json
var DefinitionSchema []byte
