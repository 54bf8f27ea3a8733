package verify

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
)

// Path checks what lies at a path or URL. It is a dataset's folder if it ends with a
// slash, and otherwise a single file. given are the flags that the commands which mend
// something repeat. The error is a *NothingError where neither a manifest nor a part lies
// there.
func Path(ctx context.Context, path string, o account.Options, given []string) (*Output, error) {
	o = o.WithDefaults()
	out := definition.Output{Path: path}
	root, file := path, ""
	if !out.Dataset() {
		root, file = definition.SplitPath(path)
	}
	dest, err := o.Tables.Open(ctx, root, out)
	if err != nil {
		return nil, err
	}
	found, err := check(ctx, dest, path, file)
	if err != nil {
		return nil, err
	}
	if found.nothing {
		return nil, &NothingError{Path: path, Near: nearby(path)}
	}
	found.finish(&definition.Definition{Given: given}) // its commands say DEFINITION
	return found, nil
}

// NothingError means that there is nothing to check at a path.
type NothingError struct {
	Path string
	Near string // the folder of a dataset nearby, "" if there is none
}

// Error names the path, and what may have been meant.
func (e *NothingError) Error() string {
	text := "there is no manifest at " + e.Path + ": name a definition, the folder of a dataset, or a file beside which a manifest lies (formetl export writes one with --manifest)"
	if e.Near != "" {
		text += "; a dataset lies at " + e.Near
	}
	return text
}

// nearby returns the folder of a dataset around a local path or right below it, "" if
// there is none.
func nearby(path string) string {
	if strings.Contains(path, "://") {
		return ""
	}
	places := []string{filepath.Join(path, "*")}
	for folder := filepath.Clean(path); folder != filepath.Dir(folder); {
		folder = filepath.Dir(folder)
		places = append(places, folder)
	}
	for _, place := range places {
		if found, _ := filepath.Glob(filepath.Join(place, load.ManifestName)); len(found) > 0 { // of a bad pattern there is none
			return filepath.Dir(found[0]) + string(filepath.Separator)
		}
	}
	return ""
}
