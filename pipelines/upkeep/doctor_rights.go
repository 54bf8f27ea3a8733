package upkeep

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

// The rights that a run needs at a destination, in the order of the checklist.
const (
	lists       = "lists"
	writes      = "writes"
	reads       = "reads"
	conditional = "conditional writes"
	stages      = "stages"
	removes     = "removes"

	place = "place" // the check of a place that cannot be used
)

// rights tests the rights at all outputs side by side, at the place of one form. It returns
// the outputs whose place can be used.
func (e *examination) rights(ctx context.Context, form string) (usable []definition.Output) {
	found := make([][]Check, len(e.def.Outputs))
	var made []string
	var all sync.WaitGroup
	for i, out := range e.def.Outputs {
		if out.Path == definition.StdoutPath {
			continue
		}
		at, err := output.Locate(e.def, out, form, e.o.RunID)
		if err != nil {
			found[i] = []Check{failed(place, out.Path, err, "correct the path in the definition")}
			continue
		}
		if isLocal(at.Root) {
			made = append(made, absent(at.Root)...)
		}
		all.Go(func() { found[i] = e.rightsAt(ctx, form, out, at) })
	}
	all.Wait()
	// Outputs may share folders, so these are removed when all are done.
	slices.SortFunc(made, func(a, b string) int { return len(b) - len(a) })
	if err := removeEmpty(made); err != nil {
		c := failed(removes, "", err, "remove it")
		c.Detail = "a folder that was made stays: " + c.Detail
		e.add(c)
	}
	for i, of := range found {
		if !slices.ContainsFunc(of, func(c Check) bool { return c.Name == place }) {
			usable = append(usable, e.def.Outputs[i])
		}
		e.Checks = append(e.Checks, of...)
	}
	return usable
}

// rightsAt tests the rights at one output. At a table it tests what a load does, and changes
// nothing.
func (e *examination) rightsAt(ctx context.Context, form string, out definition.Output, at output.Location) []Check {
	if out.Database != nil {
		if err := output.CheckTable(ctx, e.o.Job(e.def, form), out); err != nil {
			what, cure, _ := told(err)
			return []Check{{Name: place, Of: at.Path, State: Failed, Detail: what, Cure: cure, Err: err}}
		}
		return []Check{{Name: writes, Of: at.Path, State: OK, Detail: "the table can be loaded"}}
	}
	dest, err := e.o.Tables.Open(ctx, at.Root, out)
	p := &prober{dest: dest, name: load.ProbePrefix + rand.Text(), run: e.o.RunID}
	return p.all(ctx, at, err)
}

// isLocal tells whether the root of a destination is a folder of this machine.
func isLocal(root string) bool { return !strings.Contains(root, "://") }

// prober tests what a run does at a destination, with objects of the control folder.
type prober struct {
	dest  load.Destination
	name  string // of the probe object
	run   string
	found map[string]Check // by name
	why   string           // why what was not found was not tested
}

// all makes all checks of a place, in the order of the checklist. err is why it could not be
// opened.
func (p *prober) all(ctx context.Context, at output.Location, err error) (all []Check) {
	if p.found = map[string]Check{}; err != nil {
		p.unusable(err)
	} else {
		p.test(ctx, at)
	}
	for _, name := range []string{place, lists, writes, reads, conditional, stages, removes} {
		c, tested := p.found[name]
		if !tested {
			c = Check{Name: name, State: NotChecked, Detail: p.why}
		}
		if c.Of = at.Path; tested || name != place {
			all = append(all, c)
		}
	}
	return all
}

// cleanupTime bounds how long the removal of a probe may take after a stop.
const cleanupTime = 5 * time.Second

// content is what a probe object holds.
func content(n int) []byte { return fmt.Appendf(nil, "formetl doctor %d\n", n) }

// test makes all checks. Where nothing can be removed, nothing is written. Where the place
// cannot be used, nothing more is tried.
func (p *prober) test(ctx context.Context, at output.Location) {
	_, err := p.dest.List(ctx, p.name)
	if err == nil && at.Scope != "" {
		err = p.noFolder(ctx, at)
	}
	if err == nil && at.Scope == "" && at.Manifest != "" {
		if _, err = p.dest.Stat(ctx, at.Manifest); errors.Is(err, load.ErrNotExist) {
			err = nil
		}
	}
	if p.barred(err) {
		return
	}
	if err != nil {
		p.fail(lists, err)
	}
	// The name is not taken, so this removes nothing. A store that denies it says so.
	if err := p.dest.Delete(ctx, p.name); err != nil {
		p.fail(removes, err)
		p.ok(lists, "objects can be listed")
		p.why = "nothing was written, because it could not be removed again"
	} else if p.write(ctx) {
		p.stage(ctx)
		p.ok(lists, "what was written is listed")
	}
}

// noFolder returns an error if something lies below the name of a single file.
func (p *prober) noFolder(ctx context.Context, at output.Location) error {
	below, err := p.dest.List(ctx, at.Scope+"/")
	if err != nil || len(below) == 0 {
		return err
	}
	return &load.Error{Kind: load.ErrUnusable, Op: "create", Path: at.Path, Hint: "choose another name, or move the folder away", Err: fmt.Errorf("it is a folder that holds %s", below[0].Name)}
}

// write tests small objects, such as manifests. It returns false if the place cannot be used.
func (p *prober) write(ctx context.Context) bool {
	err := p.dest.Put(ctx, p.name, content(1), load.AnyVersion)
	if err != nil { // its answer may be all that was lost
		later, cancel := load.Lingering(ctx, cleanupTime)
		_ = p.dest.Delete(later, p.name)
		cancel()
	}
	if p.barred(err) {
		return false
	}
	if err != nil {
		p.fail(writes, err)
		p.why = "nothing could be written"
		return true
	}
	defer p.remove(ctx)
	p.ok(writes, "a small object was written")
	if found, err := p.dest.List(ctx, p.name); err == nil && !slices.Contains(load.NamesOf(found), p.name) {
		p.fail(lists, &load.Error{Kind: load.ErrFailed, Op: "list", Path: p.name, Hint: "use a store whose listings are consistent", Err: errors.New("what was written is not listed")})
	}
	data, version, err := p.dest.Get(ctx, p.name)
	switch {
	case err != nil:
		p.fail(reads, err)
		p.why = "nothing could be read"
		return true
	case !bytes.Equal(data, content(1)):
		p.fail(reads, &load.Error{Kind: load.ErrFailed, Op: "read", Path: p.name, Hint: "look what stands between this machine and the store", Err: errors.New("other bytes came than were written")})
	}
	p.ok(reads, "it was read back")
	p.condition(ctx, version)
	return true
}

// condition tests that a write is refused whose condition does not hold. version is that
// of the probe object.
func (p *prober) condition(ctx context.Context, version string) {
	refused := func(err error) error { // nil if it was, because of its condition
		switch {
		case err == nil:
			return errUnguarded
		case errors.Is(err, load.ErrConflict):
			return nil
		}
		return err
	}
	created := refused(p.dest.Put(ctx, p.name, content(2), load.NoVersion))
	replaced := p.dest.Put(ctx, p.name, content(3), version)
	stale := refused(p.dest.Put(ctx, p.name, content(4), version))
	p.result(conditional, cmp.Or(replaced, created, stale), "a second creation and a write over a newer version were refused")
}

var errUnguarded = &load.Error{
	Kind: load.ErrUnusable, Op: "use", Path: "the place", Hint: "use a store or version that honours conditional writes",
	Err: errors.New("it writes although the condition of the write does not hold, so that two runs could write at once"),
}

// stage tests a data object up to the step before it becomes visible.
func (p *prober) stage(ctx context.Context) {
	p.result(stages, p.stageAndAbort(ctx), "a data object was staged and taken back")
}

func (p *prober) stageAndAbort(ctx context.Context) (err error) {
	upload, err := p.dest.Stage(ctx, p.run, "_formetl-doctor")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, upload.Abort()) }()
	if _, err := upload.Write(content(1)); err != nil {
		return err
	}
	prepared, err := upload.Prepare(ctx)
	if err != nil {
		return err
	}
	err = p.dest.Check(ctx, prepared)
	ctx, cancel := load.Lingering(ctx, cleanupTime)
	defer cancel()
	return errors.Join(err, p.dest.Abort(ctx, prepared))
}

// remove removes the probe object, also after a stop, and tests that it is gone.
func (p *prober) remove(ctx context.Context) {
	ctx, cancel := load.Lingering(ctx, cleanupTime)
	defer cancel()
	err := p.dest.Delete(ctx, p.name)
	if err == nil {
		if _, _, there := p.dest.Get(ctx, p.name); there == nil {
			err = &load.Error{Kind: load.ErrFailed, Op: "remove", Path: p.name, Hint: "look whether the bucket keeps objects (object lock, retention)", Err: errors.New("it is still there after it was removed")}
		}
	}
	p.result(removes, err, "it was removed again")
}

// ok adds a check that went well, unless that of this name failed before.
func (p *prober) ok(name, detail string) {
	if _, failed := p.found[name]; !failed {
		p.found[name] = Check{Name: name, State: OK, Detail: detail}
	}
}

func (p *prober) fail(name string, err error) {
	what, cure, _ := told(err)
	p.found[name] = Check{Name: name, State: Failed, Detail: what, Cure: cure, Err: err}
}

// result adds a check that failed if there is an error, and went well otherwise.
func (p *prober) result(name string, err error, detail string) {
	if err != nil {
		p.fail(name, err)
		return
	}
	p.ok(name, detail)
}

// unusable drops all checks of a place but that it cannot be used.
func (p *prober) unusable(err error) {
	clear(p.found)
	p.fail(place, err)
	p.why = "the place cannot be used"
}

// barred tells whether an error means that the place cannot be used at all.
func (p *prober) barred(err error) bool {
	if err == nil {
		return false
	}
	_, _, usable := told(err)
	if !usable {
		p.unusable(err)
	}
	return !usable
}

// told divides an error of a destination into what failed and what to do, and tells whether
// the place can be used all the same.
func told(err error) (what, cure string, usable bool) {
	usable = true
	if failed, ok := errors.AsType[*load.Error](err); ok {
		cure, usable = failed.Hint, failed.Kind == load.ErrFailed
	} else if unfit, ok := errors.AsType[*load.TableError](err); ok {
		cure, usable = unfit.Hint, false
	}
	if cure == "" {
		return err.Error(), "check the place, its rights and the network", usable
	}
	return strings.Replace(err.Error(), "; "+cure, "", 1), cure, usable
}
