package output

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
)

// Several processes may stage the parts of a snapshot, each a share of them. What they have
// staged belongs to the run and not to the process: it lies under the run's id, and stays
// for the process that commits.

// StagedPart is a part that a process has staged for the one that commits.
type StagedPart struct {
	Output  string              `json:"output"` // its path
	Part    string              `json:"part"`   // its window, as in footers
	Objects []load.PreparedPart `json:"objects,omitempty"`
	Ends    []int64             `json:"ends,omitempty"` // results of the part up to the end of each object
	Made    string              `json:"made"`           // see encoding.made
}

// Parts returns how many parts the output with the most of them has of a snapshot.
func (s *Set) Parts(snapshot *reconcile.Snapshot) (most int) {
	for _, t := range s.live() {
		if out, ok := t.out.(preparer); ok {
			most = max(most, len(out.parts(snapshot)))
		}
	}
	return most
}

// StageShare stages a share of each output's parts, of n shares that are about equal. share
// is from 0 on. An output that fails is left to Commit, which meets the same.
func (s *Set) StageShare(ctx context.Context, snapshot *reconcile.Snapshot, share, n int) (staged []StagedPart, err error) {
	for _, t := range s.live() {
		out, ok := t.out.(preparer)
		if !ok {
			continue
		}
		done, err := stageShare(ctx, out, snapshot, share, n)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			if err := s.setAside(ctx, t, t.out.at().named(err)); err != nil {
				return nil, err
			}
		}
		staged = append(staged, done...)
	}
	return staged, nil
}

func stageShare(ctx context.Context, out preparer, snapshot *reconcile.Snapshot, share, n int) (staged []StagedPart, err error) {
	p := out.at()
	p.snapshot = snapshot
	columns, _, err := out.columns(ctx)
	if err != nil {
		return nil, err
	}
	made, err := p.made(columns)
	if err != nil {
		return nil, err
	}
	mine := shareOf(out.parts(snapshot), share, n)
	if err := stageAll(ctx, out, mine, columns); err != nil {
		return nil, err
	}
	for _, part := range mine {
		is := StagedPart{Output: p.Path, Part: part.String(), Objects: part.prepared, Made: made}
		for _, s := range part.spans {
			is.Ends = append(is.Ends, s.to)
		}
		staged = append(staged, is)
	}
	return staged, nil
}

// shareOf returns the parts of a share, by the results that they hold.
func shareOf(parts []*outputPart, share, n int) (mine []*outputPart) {
	results := func(p *outputPart) int64 { return max(1, reading.Results(p.windows)) }
	var total, before int64
	for _, p := range parts {
		total += results(p)
	}
	for _, p := range parts {
		if int(before*int64(n)/total) == share {
			mine = append(mine, p)
		}
		before += results(p)
	}
	return mine
}

// LeaveStaged leaves what this process has staged to the run. From now on, Close does not
// abort it.
func (s *Set) LeaveStaged() {
	for _, t := range s.live() {
		t.out.at().staged = nil
	}
}

// Adopt gives the outputs what other processes of the run have staged of the snapshot that
// is committed next.
func (s *Set) Adopt(staged []StagedPart) {
	for _, t := range s.live() {
		p := t.out.at()
		if d, ok := t.out.(*dataset); ok {
			d.lacks = true // the other processes know; a set that is written again is the same
		}
		p.adopted = map[string]StagedPart{}
		for _, is := range staged {
			if is.Output == p.Path {
				p.adopted[is.Part] = is
			}
		}
	}
}

// takeAdopted gives parts the objects that other processes have staged, where all of a
// part's are still there.
func (p *place) takeAdopted(ctx context.Context, parts []*outputPart, columns []schemas.Column) error {
	if len(p.adopted) == 0 {
		return nil
	}
	made, err := p.made(columns)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(load.SideBySide)
	for _, part := range parts {
		is, ok := p.adopted[part.String()]
		if !ok || is.Made != made {
			continue
		}
		group.Go(func() error {
			for _, object := range is.Objects {
				if err := p.dest.Check(ctx, object.Prepared); load.NotThere(err) {
					return nil // it is staged again
				} else if err != nil {
					return err
				}
			}
			part.prepared, part.staged, part.adopted = is.Objects, true, true
			from := int64(0)
			for _, to := range is.Ends {
				part.spans, from = append(part.spans, span{from, to}), to
			}
			return nil
		})
	}
	return group.Wait()
}

// made is a digest of all that the bytes of a part depend on, except its rows.
func (e *encoding) made(columns []schemas.Column) (string, error) {
	described, err := e.described(columns)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s", e.format.Name, e.out.Profile, e.out.Compression, described))
	return hex.EncodeToString(sum[:]), nil
}
