package pipelines

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines/definition"
)

// written returns what a manifest says of a generation of the service. Those of API v1 say
// nothing, because they are older than the other generation.
func written(client extract.Client) string {
	if api := client.Generation(); api != string(definition.APIv1) {
		return api
	}
	return ""
}

// tellGeneration tells the log that the run goes on with a dataset which was read by another
// generation of the service.
func (f *formRun) tellGeneration(ctx context.Context) {
	now := written(f.reader.Client)
	for _, m := range f.outputs.Manifests() {
		if m != nil && m.API != now {
			f.reader.Log.LogAttrs(ctx, slog.LevelInfo, "the results come by another generation of the service than before",
				slog.String("was", cmp.Or(m.API, string(definition.APIv1))), slog.String("is", f.reader.Client.Generation()))
			return
		}
	}
}
