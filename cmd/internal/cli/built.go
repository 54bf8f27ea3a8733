package cli

import (
	"context"
	"log/slog"

	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

// Tables returns the formats and destinations that all programs are built with. What a
// destination tells besides errors goes to log.
func Tables(log *slog.Logger) output.Tables { return tables(log) }

// Checks returns what definitions are checked against. lookup is the environment. Without
// key no reference of a secret is resolved.
func Checks(ctx context.Context, lookup flags.Environment, variables map[string]string, key bool) definition.LoadOptions {
	p := &process{lookup: lookup}
	return definition.LoadOptions{
		Secrets: *p.secrets(ctx), Variables: variables, Formats: formats(), Schemes: schemes(), WithoutSecrets: !key,
	}
}
