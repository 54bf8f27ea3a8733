// Package load writes record batches to files and datasets, and makes a run's
// output visible either whole or not at all.
//
// An Encoder turns batches into the bytes of one format. A Destination is a folder, a
// prefix of a bucket, or a table of a database. Its Stager stages data objects in two
// steps: Prepare makes them durable, Commit makes them visible. Its Store keeps small
// objects, and its Leaser lets one run write at a time. A dataset is a set of parts that
// its Manifest lists; a single file has a manifest beside it. A Commit is recorded at the
// destination first, so Recover can finish it if its process died. Clean removes what dead
// runs left behind.
//
// The package knows no form service and no schema file, and it opens no files:
// formats and destinations are sub-packages that import this one. The command
// line lists them in tables; nothing registers itself.
//
// Begin reading with Destination (destination.go), then Commit.Do
// (commit.go), then the comment of Clean (clean.go). Package loadtest holds the
// tests that every encoder and destination must pass.
package load

import "embed"

// Docs are the topics of the documentation on formats, spreadsheets, S3 and databases, as
// Markdown.
//
//go:embed *.md
var Docs embed.FS
