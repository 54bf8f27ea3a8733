package console

import (
	"cmp"
	"context"
	"log/slog"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/arrowout"
	"github.com/formetl/formetl/load/csvout"
	"github.com/formetl/formetl/load/jsonout"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/load/parquetout"
	"github.com/formetl/formetl/load/postgres"
	"github.com/formetl/formetl/load/s3"
	"github.com/formetl/formetl/load/xlsxout"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

// What formetl and formetl-worker are built with. Nothing registers itself: the S3 SDK and the
// drivers of databases are linked here and nowhere else.

// Formats returns the formats of files.
func Formats() []load.Format {
	return []load.Format{csvout.Format(), csvout.TSV(), jsonout.NDJSON(), jsonout.JSON(), parquetout.Format(), arrowout.Format(), xlsxout.Format()}
}

// Schemes returns the schemes with which a path may begin if it is not local, such as s3://.
func Schemes() []string { return []string{s3.Scheme} }

// Checks returns the options by which definitions are checked. lookup reads the environment, and
// ctx bounds the commands that definitions name for secrets.
func Checks(ctx context.Context, lookup func(string) (string, bool)) definition.LoadOptions {
	state, _ := lookup(StateVariable)
	if path, err := StatePath(state); err == nil {
		state = path
	}
	return definition.LoadOptions{
		Secrets: *Secrets(ctx, lookup), State: state, Formats: Formats(), Schemes: Schemes(),
		Databases: []definition.DatabaseKind{{Name: postgres.FormatName, Schema: "public", Address: postgres.Address, CheckNames: postgres.CheckNames}},
	}
}

// Secrets returns how references to secrets are resolved: by lookup, or by a command bounded by ctx.
func Secrets(ctx context.Context, lookup func(string) (string, bool)) *definition.Secrets {
	return &definition.Secrets{Lookup: lookup, Command: func(dir, line string) (string, error) {
		return definition.RunCommand(ctx, dir, line)
	}}
}

// BuiltIn returns the formats and destinations of the program: folders, prefixes of buckets, and
// tables of databases. What a destination reports besides errors goes to log. The last format is
// that of the rows of a database table, which no file has.
func BuiltIn(log *slog.Logger) output.BuiltIn {
	state := func(ctx context.Context, path string, o *definition.S3) (load.Destination, error) {
		if definition.OnS3(path) {
			return s3.New(ctx, path, s3Options(o, log))
		}
		return local.NewState(path)
	}
	table := func(path string, o *definition.Database) (load.Table, error) {
		return postgres.New(path, postgres.Settings{
			DSN: o.DSN.Reveal(), Control: o.Control, Adopt: o.Adopt, SoftDelete: o.SoftDelete, Audit: o.Audit, After: o.After,
		})
	}
	return output.BuiltIn{Formats: append(Formats(), load.Format{Name: postgres.FormatName}), State: state, OpenTable: table, Open: func(ctx context.Context, root string, o definition.Output) (load.Destination, error) {
		scheme, _, remote := strings.Cut(root, "://")
		switch {
		case !remote:
			return local.New(root)
		case scheme == s3.Scheme:
			return s3.New(ctx, root, s3Options(o.S3, log))
		}
		return nil, &definition.Fault{Code: 78, Text: "no files lie at " + scheme + "://", Cure: "give a local path, or one on s3://; for a table, give the definition that writes it, such as feedback.yaml"}
	}}
}

func s3Options(o *definition.S3, log *slog.Logger) s3.Options {
	o = cmp.Or(o, &definition.S3{})
	return s3.Options{
		Endpoint: o.Endpoint, Region: o.Region, PathStyle: o.PathStyle,
		SSE: o.SSE, KMSKeyID: o.KMSKeyID, PartSize: o.PartSize, PartsInFlight: o.PartsInFlight, Logger: log,
	}
}
