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

// The names of the checks of the rights that a run needs at a destination, in the order of the
// checklist.
const (
	lists       = "lists"
	writes      = "writes"
	reads       = "reads"
	conditional = "conditional writes"
	stages      = "stages"
	removes     = "removes"

	place = "place" // name of the check of a destination that cannot be used at all
)

// rights tests the rights that runs need at all outputs, side by side, with the paths of one form.
// It returns the outputs whose destination can be used.
func (e *examination) rights(ctx context.Context, form string) (usable []definition.Output) {
	def, _ := e.def.For(form) // a schema that is wrong has a check of its own
	outputs := def.WithFiles()
	found := make([][]Check, len(outputs))
	var all sync.WaitGroup
	for i, out := range outputs {
		if out.Path == definition.StdoutPath {
			continue
		}
		at, err := output.Locate(def, out, form, e.o.RunID)
		if err != nil {
			found[i] = []Check{failed(place, out.Path, err, "correct the path in the definition")}
			continue
		}
		e.makes(at.Root)
		all.Go(func() { found[i] = e.rightsAt(ctx, def, form, out, at) })
	}
	all.Wait()
	e.removeFolders()
	for i, of := range found {
		if i < len(def.Outputs) && !slices.ContainsFunc(of, func(c Check) bool { return c.Name == place }) {
			usable = append(usable, def.Outputs[i])
		}
		e.Checks = append(e.Checks, of...)
	}
	return usable
}

// rightsAt tests the rights that a run needs at one output. Of a table it tests what a
// load does, without a change to the table.
func (e *examination) rightsAt(ctx context.Context, def *definition.Definition, form string, out definition.Output, at output.Location) []Check {
	if out.Database != nil {
		if err := output.CheckTable(ctx, e.o.Job(def, form), out); err != nil {
			return []Check{failed(place, at.Path, err, "")}
		}
		return []Check{{Name: writes, Of: at.Path, State: OK, Detail: "the table can be loaded"}}
	}
	dest, err := e.o.BuiltIn.Open(ctx, at.Root, out)
	p := &prober{dest: dest, name: load.ProbePrefix + rand.Text(), run: e.o.RunID}
	return p.all(ctx, at, err)
}

// isLocal tells whether the root of a destination is a folder of this machine and no address.
func isLocal(root string) bool { return !strings.Contains(root, "://") }

// prober tests what a run does at a destination, with small objects in its control folder.
type prober struct {
	dest  load.Destination
	name  string // name of the probe object
	run   string
	found map[string]Check // checks made so far, by their names
	why   string           // why the checks that are not in found were not made
}

// all makes all checks of the destination of an output at a location, and returns them in the order
// of the checklist. err is why the destination could not be opened, nil if it could.
func (p *prober) all(ctx context.Context, at output.Location, err error) (all []Check) {
	p.found = map[string]Check{}
	if p.usable(place, err) {
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

// tell notes how the check called name came out: failed if err is not nil, else OK with detail. A
// check that failed before stays failed.
func (p *prober) tell(name string, err error, detail string) {
	if err != nil {
		p.found[name] = failed(name, "", err, "")
	} else if _, told := p.found[name]; !told {
		p.found[name] = Check{Name: name, State: OK, Detail: detail}
	}
}

// usable notes err of the check called name, and tells whether the destination can be tested
// further. If not, the only check that it keeps says that the place cannot be used.
func (p *prober) usable(name string, err error) bool {
	if err == nil {
		return true
	}
	_, _, usable := cureOf(err)
	if !usable || name == place {
		clear(p.found)
		name, p.why, usable = place, "the place cannot be used", false
	}
	p.tell(name, err, "")
	return usable
}

// cleanupTime is how long the removal of a probe object may take after doctor was stopped.
const cleanupTime = 5 * time.Second

// content returns what the n-th write of a probe object writes.
func content(n int) []byte { return fmt.Appendf(nil, "formetl doctor %d\n", n) }

// test makes all checks of a destination. If no object can be removed there, it writes none. If the
// destination cannot be used, it tries nothing more.
func (p *prober) test(ctx context.Context, at output.Location) {
	_, err := p.dest.List(ctx, p.name)
	switch {
	case err != nil:
	case at.Scope != "":
		var below []load.Object
		if below, err = p.dest.List(ctx, at.Scope+"/"); len(below) > 0 {
			err = &load.Error{Kind: load.ErrUnusable, Op: "create", Path: at.Path, Remedy: "choose another name, or move the folder away", Err: fmt.Errorf("it is a folder that contains %s", below[0].Name)}
		}
	case at.Manifest != "":
		if _, err = p.dest.Stat(ctx, at.Manifest); errors.Is(err, load.ErrNotExist) {
			err = nil
		}
	}
	if !p.usable(lists, err) {
		return
	}
	// No object has the probe's name, so Delete removes nothing. If a store denies the right to
	// delete, it says so all the same.
	if err := p.dest.Delete(ctx, p.name); err != nil {
		p.tell(removes, err, "")
		p.tell(lists, nil, "objects can be listed")
		p.why = "nothing was written, because it could not be removed again"
		return
	}
	err = p.dest.Put(ctx, p.name, content(1), load.AnyVersion)
	if err != nil { // the object may have been written all the same, and only the answer lost
		later, cancel := load.Lingering(ctx, cleanupTime)
		_ = p.dest.Delete(later, p.name)
		cancel()
		p.why = "nothing could be written"
	}
	if !p.usable(writes, err) {
		return
	}
	if err == nil {
		p.tell(writes, nil, "a small object was written")
		p.object(ctx)
		p.remove(ctx)
	}
	p.tell(stages, p.stage(ctx), "a data file was prepared and removed again")
	p.tell(lists, nil, "what was written is listed")
}

// object tests what a run does with small objects such as manifests: listing, reading and
// conditional writes of the probe object, which was written before.
func (p *prober) object(ctx context.Context) {
	if found, err := p.dest.List(ctx, p.name); err == nil && !slices.Contains(load.NamesOf(found), p.name) {
		p.tell(lists, &load.Error{Kind: load.ErrFailed, Op: "list", Path: p.name, Remedy: "use another store, which lists at once what was written; ask the people who run it", Err: errors.New("what was written is not listed")}, "")
	}
	data, version, err := p.dest.Get(ctx, p.name)
	if err != nil {
		p.tell(reads, err, "")
		p.why = "nothing could be read"
		return
	}
	if !bytes.Equal(data, content(1)) {
		err = &load.Error{Kind: load.ErrFailed, Op: "read", Path: p.name, Remedy: "check the proxies and gateways between this machine and the store", Err: errors.New("the bytes that were read are not those that were written")}
	}
	p.tell(reads, err, "the small object was read back")
	refused := func(err error) error { // nil if the write was refused because of its condition
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
	p.tell(conditional, cmp.Or(replaced, created, stale), "one run cannot overwrite what another has just written")
}

var errUnguarded = &load.Error{
	Kind: load.ErrUnusable, Op: "use", Path: "the place", Remedy: "use another store, or a version of this one that supports conditional writes (If-Match, If-None-Match); ask the people who run it",
	Err: errors.New("it overwrote an object although the write forbade that (If-Match, If-None-Match), so two runs could overwrite each other"),
}

// stage tests the upload of a data object up to the step before the object becomes visible, and
// takes it back.
func (p *prober) stage(ctx context.Context) (err error) {
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

// remove removes the probe object, also after doctor was stopped, and tests that it is gone.
func (p *prober) remove(ctx context.Context) {
	ctx, cancel := load.Lingering(ctx, cleanupTime)
	defer cancel()
	err := p.dest.Delete(ctx, p.name)
	if err == nil {
		if _, _, there := p.dest.Get(ctx, p.name); there == nil {
			err = &load.Error{Kind: load.ErrFailed, Op: "remove", Path: p.name, Remedy: "turn off object lock or retention on the bucket, or use another bucket, because runs have to remove objects; remove the probe by hand once that is possible", Err: errors.New("the store said that it was removed, but it is still there")}
		}
	}
	p.tell(removes, err, "the small object was removed again")
}

// cureOf divides an error of a destination into what failed and what to do about it, and tells
// whether the destination can be used all the same.
func cureOf(err error) (what, cure string, usable bool) {
	cure, usable = "check the path, its permissions and the network", true
	if failed, ok := errors.AsType[*load.Error](err); ok {
		cure, usable = cmp.Or(failed.Remedy, cure), failed.Kind == load.ErrFailed
	}
	return err.Error(), cure, usable
}
