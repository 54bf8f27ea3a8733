package load

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"strings"
)

// Versions before 2 of this program kept a journal of prepared parts in the
// control folder of a dataset: a header, and beside it a folder of records.
const journalName = "journal"

// DiscardJournal removes the journal of an older version, and the parts that its
// run had staged and no recorded commit needs. The caller holds the dataset's
// lease and has finished its commit. It gives the run of the journal, "" where
// there is none.
func DiscardJournal(ctx context.Context, d Destination) (run string, err error) {
	header := path.Join(ControlFolder, journalName)
	objects, err := d.List(ctx, header)
	if err != nil || len(objects) == 0 {
		return "", err
	}
	data, _, err := d.Get(ctx, header)
	if err != nil && !errors.Is(err, ErrNotExist) {
		return "", err
	}
	var h struct {
		RunID string `json:"run_id"`
	}
	_ = json.Unmarshal(data, &h) // what cannot be read names no run
	if CheckRun(h.RunID) == nil {
		if err := abortRun(ctx, d, h.RunID); err != nil {
			return h.RunID, err
		}
	}
	for _, o := range objects { // the header comes first, by its name
		if o.Name != header && !strings.HasPrefix(o.Name, header+"-") {
			continue
		}
		if err := d.Delete(ctx, o.Name); err != nil {
			return h.RunID, err
		}
	}
	if h.RunID == "" {
		return "unknown", nil
	}
	return h.RunID, nil
}

// abortRun removes the parts that a dead run staged.
func abortRun(ctx context.Context, d Destination, run string) error {
	sweeper, ok := d.(Sweeper)
	if !ok {
		return nil
	}
	left, err := sweeper.Leftovers(ctx)
	if err != nil {
		return err
	}
	holders, err := sweeper.Holders(ctx)
	if err != nil {
		return err
	}
	for _, h := range holders {
		if h.RunID == run { // a run of several forms may be at others here
			return nil
		}
	}
	for _, l := range left {
		if _, other := ParsePartName(l.Name); other != nil || l.Run != run {
			continue
		}
		if err := sweeper.Remove(ctx, l); err != nil {
			return err
		}
	}
	return nil
}
