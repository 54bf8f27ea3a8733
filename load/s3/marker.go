package s3

import (
	"context"
	"encoding/json"
	"log/slog"
	"path"
	"strings"
	"time"

	"github.com/formetl/formetl/load"
)

// stagedPrefix is the prefix of markers in a run's folder.
const stagedPrefix = "staged-"

// marker is a small object that tells of an upload under way. Listing alone
// does not find uploads. MinIO lists them for an exact key only and not after a
// restart, and no store tells which program began them. The marker is written
// as soon as the upload has an id, and removed after the upload has ended.
type marker struct {
	Name   string    `json:"name"`   // the final name
	Upload string    `json:"upload"` // the store's id
	Since  time.Time `json:"since"`
}

func markerName(run, id string) string {
	return path.Join(load.ControlFolder, run, stagedPrefix+id)
}

// markerRun returns the run whose marker has this name. ok is false if it is no marker.
func markerRun(name string) (run string, ok bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 || parts[0] != load.ControlFolder || load.CheckRun(parts[1]) != nil {
		return "", false
	}
	id, ok := strings.CutPrefix(parts[2], stagedPrefix)
	return parts[1], ok && isID(id)
}

// decodeMarker reads a marker. It returns false if the marker cannot be an
// upload's, because anyone may have written it.
func decodeMarker(data []byte) (marker, bool) {
	var m marker
	if json.Unmarshal(data, &m) != nil {
		return marker{}, false
	}
	return m, m.Upload != "" && load.CheckObjectName(m.Name) == nil
}

func (d *Destination) mark(ctx context.Context, run, id string, m marker) error {
	data, _ := json.Marshal(m) // encoding strings and a time cannot fail
	_, err := d.put(ctx, markerName(run, id), append(data, '\n'), load.AnyVersion)
	return err
}

// unmark removes the marker of an upload that has ended. A failure is only
// logged, because clean removes a marker that stays.
func (d *Destination) unmark(ctx context.Context, s staged) {
	if s.Upload == "" {
		return
	}
	ctx, cancel := cleanup(ctx)
	defer cancel()
	name := markerName(s.Run, s.ID)
	if err := d.remove(ctx, name); err != nil {
		d.options.Logger.LogAttrs(ctx, slog.LevelWarn, "the marker of an upload that has ended could not be removed; formetl clean removes it",
			slog.String("path", d.path(name)), slog.String("error", err.Error()))
	}
}
