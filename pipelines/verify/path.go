package verify

import (
	"context"

	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
)

// Path checks what lies at a path or URL. It is a dataset's folder if it ends with a
// slash, and otherwise a single file. given are the flags that the commands which mend
// something repeat. The error is a *NothingError where neither a manifest nor a part lies
// there.
func Path(ctx context.Context, path string, o account.Options, given []string) (*Report, error) {
	report := &Report{}
	o = o.WithDefaults()
	out := definition.Output{Path: path}
	root, file := path, ""
	if !out.Dataset() {
		root, file = definition.SplitPath(path)
	}
	dest, err := o.Tables.Open(ctx, root, out)
	if err != nil {
		return report, err
	}
	found, err := check(ctx, dest, path, file)
	if err != nil {
		return report, err
	}
	if found.nothing {
		return report, &NothingError{Path: path}
	}
	found.finish(&definition.Definition{Given: given}) // its commands say DEFINITION
	report.Outputs = []*Output{found}
	return report, nil
}

// NothingError means that there is nothing to check at a path.
type NothingError struct{ Path string }

// Error names the path, and what can be named instead.
func (e *NothingError) Error() string {
	return "there is no manifest at " + e.Path + ": name a definition, the folder of a dataset, or a file beside which a manifest lies (formetl export writes one with --manifest)"
}
