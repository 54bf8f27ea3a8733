package pipelines

import (
	"errors"
	"slices"
	"time"

	"github.com/formetl/formetl/pipelines/definition"
)

// SpoolState is what a run of the definition that ended early had read of a
// form and kept in the state folder: the next run goes on with it.
type SpoolState struct {
	RunID    string
	Form     string
	OpenedAt time.Time
	Windows  int // that were read
	Rows     int64
	Bytes    int64

	folder string
}

// leftSpools are the spools that runs of the definition which ended early left,
// oldest first.
func leftSpools(def *definition.Definition) []SpoolState {
	var left []SpoolState
	for _, k := range keptSpools(def.State) {
		if h := k.header; !k.held && k.err == nil && h.is(def.Name, h.Form, def.File) {
			left = append(left, SpoolState{
				RunID: h.RunID, Form: h.Form, OpenedAt: h.OpenedAt, Windows: k.windows, Rows: k.rows, Bytes: k.bytes, folder: k.folder,
			})
		}
	}
	return left
}

// ofForms are the spools of these forms.
func ofForms(left []SpoolState, forms []string) []SpoolState {
	return slices.DeleteFunc(left, func(s SpoolState) bool { return !slices.Contains(forms, s.Form) })
}

// discardSpools removes the spools that runs which ended early left of forms,
// and gives those that it removed. One that a run has taken up meanwhile stays.
func discardSpools(def *definition.Definition, forms []string) (discarded []SpoolState, err error) {
	for _, s := range ofForms(leftSpools(def), forms) {
		spool := lockLeft(s.folder)
		if spool == nil {
			continue
		}
		if failed := spool.close(false); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		discarded = append(discarded, s)
	}
	return discarded, err
}
