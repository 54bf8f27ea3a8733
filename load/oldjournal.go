package load

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"strings"
)

// Versions before 2 of this program kept a journal of prepared parts in the
// control folder of a dataset.
const journalName = "journal"

// DiscardJournal removes the journal of an older version, and the parts that
// the journal's run staged. The caller holds the dataset's lease and has
// finished its recorded commit. run is the run of the journal: "" if there is
// no journal, "unknown" if the journal names no run.
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
	_ = json.Unmarshal(data, &h) // a damaged header names no run
	if CheckRun(h.RunID) == nil {
		if err := DropStaged(ctx, d, "", h.RunID); err != nil {
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
