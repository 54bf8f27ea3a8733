package output

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/transform"
)

// rejectLine is one line of the dead letters: a rejected result, as JSON.
type rejectLine struct {
	ResultID int64  `json:"result_id"`
	Column   string `json:"column"`
	Raw      string `json:"raw"`
	Reason   string `json:"reason"`
	Window   string `json:"window"` // time of the dataset's part or file, see outputPart.String
}

// letters returns the rejected results of a part as lines of JSON, or nil if there are
// none. The lines name the part's span of time, because the windows that were read differ from
// run to run. It returns nil for a child output, because the main output has the dead letters.
func (e *encoding) letters(p *outputPart) (lines []byte, err error) {
	if e.out.Exploded() {
		return nil, nil
	}
	for _, w := range p.windows {
		// A window holds its rejects in the order in which they were read.
		byID := slices.SortedStableFunc(slices.Values(w.Rejects), func(a, b transform.Reject) int { return cmp.Compare(a.ResultID, b.ResultID) })
		for _, r := range byID {
			line, err := json.Marshal(rejectLine{r.ResultID, r.Column, r.Raw, r.Reason, p.String()})
			if err != nil {
				return nil, err
			}
			lines = append(append(lines, line...), '\n')
		}
	}
	return lines, nil
}

// Letters are the dead letters of outputs: the rejected results, and the windows in which they
// were found.
type Letters struct {
	Results map[int64]bool
	Windows []extract.Window
	Undated bool // a result without a date is among them
}

// DeadLetters adds the dead letters of an output to l, as its manifest lists them. It takes no
// lease.
func (j *Job) DeadLetters(ctx context.Context, out definition.Output, l *Letters) error {
	o := newOutput(j, out)
	p := o.at()
	if err := o.look(ctx); err != nil {
		return err
	}
	add := func(name string, data []byte, err error) error {
		if err == nil {
			err = l.parse(data)
		}
		if err != nil && !errors.Is(err, load.ErrNotExist) {
			return fmt.Errorf("%s: dead letters %s: %w", p.Path, name, err)
		}
		return nil
	}
	if !out.Dataset() {
		name := load.FileRejectsName(p.Scope)
		data, _, err := p.dest.Get(ctx, name)
		return add(name, data, err)
	}
	if p.manifest == nil {
		return nil
	}
	for _, part := range p.manifest.Parts {
		var data []byte
		var err error
		name := part.Path
		switch {
		case part.Rejected == 0:
			continue
		case p.table != nil:
			data, err = p.table.Letters(ctx, part)
		default:
			name = load.RejectsName(part.Letters)
			data, _, err = p.dest.Get(ctx, name)
		}
		if err = add(name, data, err); err != nil {
			return err
		}
	}
	return nil
}

// parse reads lines of dead letters. Its errors contain no values.
func (l *Letters) parse(data []byte) error {
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var r rejectLine
		var w extract.Window
		err := json.Unmarshal(line, &r)
		undated := r.Window == reading.UndatedName
		if err == nil && !undated {
			w, err = parseWindow(r.Window)
		}
		if err != nil || r.ResultID < 0 { // the text of the line may be personal data
			return &definition.Fault{Code: 65, Text: fmt.Sprintf("line %d is not a dead letter of formetl; put back the unchanged file, or move it away", number)}
		}
		l.Results[r.ResultID] = true
		switch n := len(l.Windows); {
		case undated:
			l.Undated = true
		case n == 0 || l.Windows[n-1] != w:
			l.Windows = append(l.Windows, w)
		}
	}
	return nil
}

// parseWindow reads a window as extract.Window.String shows it.
func parseWindow(text string) (w extract.Window, err error) {
	from, to, _ := strings.Cut(text, "/")
	if from != ".." {
		w.From, err = time.Parse(extract.WireTime, from)
	}
	if to != ".." && err == nil {
		w.To, err = time.Parse(extract.WireTime, to)
	}
	if err == nil && !w.From.IsZero() && !w.To.IsZero() && !w.From.Before(w.To) {
		err = errors.New("it ends before it begins")
	}
	return w, err
}
