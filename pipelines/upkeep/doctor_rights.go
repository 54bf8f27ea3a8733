package upkeep

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/account"
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

// rightsOf tests the rights at all outputs side by side, at the place of one form. usable are
// the outputs whose place can be used.
func rightsOf(ctx context.Context, def *definition.Definition, o account.Options, form string) (checks []Check, usable []definition.Output) {
	found := make([][]Check, len(def.Outputs))
	var made []string
	var all sync.WaitGroup
	for i, out := range def.Outputs {
		at, err := output.Locate(def, out, form, o.RunID)
		switch {
		case out.Path == definition.StdoutPath:
			continue
		case err != nil:
			found[i] = []Check{{Name: "place", Of: out.Path, State: Failed, Detail: err.Error(), Cure: "correct the path in the definition", Err: err}}
			continue
		case isLocal(at.Root):
			made = append(made, absent(at.Root)...)
		}
		all.Go(func() { found[i] = rightsAt(ctx, def, form, o, out, at) })
	}
	all.Wait()
	// Outputs may share folders, so these are removed when all are done.
	slices.SortFunc(made, func(a, b string) int { return len(b) - len(a) })
	if err := removeEmpty(made); err != nil {
		checks = append(checks, Check{Name: removes, State: Failed, Detail: "a folder that was made stays: " + err.Error(), Cure: "remove it", Err: err})
	}
	for i, of := range found {
		if !slices.ContainsFunc(of, func(c Check) bool { return c.Name == place }) {
			usable = append(usable, def.Outputs[i])
		}
		checks = append(checks, of...)
	}
	return checks, usable
}

// rightsAt tests the rights at one output.
func rightsAt(ctx context.Context, def *definition.Definition, form string, o account.Options, out definition.Output, at output.Location) []Check {
	var checks []Check
	if out.Database != nil {
		checks = testTable(ctx, o, def, form, out)
	} else {
		dest, err := o.Tables.Open(ctx, at.Root, out)
		checks = testRights(ctx, &rights{dest: dest, name: load.ProbePrefix + rand.Text(), run: o.RunID}, at, err)
	}
	for i := range checks {
		checks[i].Of = at.Path
	}
	return checks
}

// testTable tests what a load does at a table, and changes nothing.
func testTable(ctx context.Context, o account.Options, def *definition.Definition, form string, out definition.Output) []Check {
	err := output.CheckTable(ctx, o.Job(def, form), out)
	if err == nil {
		return []Check{{Name: writes, State: OK, Detail: "the table can be loaded"}}
	}
	what, cure := told(err)
	return []Check{{Name: place, State: Failed, Detail: what, Cure: cure, Err: err}}
}

// isLocal tells whether the root of a destination is a folder of this machine.
func isLocal(root string) bool { return !strings.Contains(root, "://") }

// rights tests what a run does at a destination, with objects of the control folder.
type rights struct {
	dest  load.Destination
	name  string // of the probe object
	run   string
	found map[string]Check // by name
	why   string           // why what was not found was not tested
}

// testRights makes all checks of a place, in the order of the checklist. err is why it could
// not be opened.
func testRights(ctx context.Context, r *rights, at output.Location, err error) (all []Check) {
	if r.found = map[string]Check{}; err != nil {
		r.unusable(err)
	} else {
		r.test(ctx, at)
	}
	for _, name := range []string{place, lists, writes, reads, conditional, stages, removes} {
		c, tested := r.found[name]
		if !tested {
			c = Check{Name: name, State: NotChecked, Detail: r.why}
		}
		if tested || name != place {
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
func (r *rights) test(ctx context.Context, at output.Location) {
	_, err := r.dest.List(ctx, r.name)
	if err == nil && at.Scope != "" {
		err = r.noFolder(ctx, at)
	}
	if err == nil && at.Scope == "" && at.Manifest != "" {
		if _, err = r.dest.Stat(ctx, at.Manifest); errors.Is(err, load.ErrNotExist) {
			err = nil
		}
	}
	if awayOrBarred(err) {
		r.unusable(err)
		return
	}
	if err != nil {
		r.fail(lists, err)
	}
	// The name is not taken, so this removes nothing. A store that denies it says so.
	if err := r.dest.Delete(ctx, r.name); err != nil {
		r.fail(removes, err)
		r.ok(lists, "objects can be listed")
		r.why = "nothing was written, because it could not be removed again"
	} else if r.write(ctx) {
		r.stage(ctx)
		r.ok(lists, "what was written is listed")
	}
}

// awayOrBarred tells whether an error means that a place cannot be used at all.
func awayOrBarred(err error) bool {
	_, barred := errors.AsType[*load.CreateError](err)
	_, away := errors.AsType[*load.TemporaryError](err)
	_, denied := errors.AsType[*load.DeniedError](err)
	_, unfit := errors.AsType[*load.TableError](err)
	return barred || away || denied || unfit
}

// unusable adds the checks of a place that cannot be used.
func (r *rights) unusable(err error) {
	clear(r.found)
	r.fail(place, err)
	r.why = "the place cannot be used"
}

// noFolder returns an error if something lies below the name of a single file.
func (r *rights) noFolder(ctx context.Context, at output.Location) error {
	below, err := r.dest.List(ctx, at.Scope+"/")
	if err != nil || len(below) == 0 {
		return err
	}
	return &load.CreateError{Op: "create", Path: at.Path, Hint: "choose another name, or move the folder away", Err: fmt.Errorf("it is a folder that holds %s", below[0].Name)}
}

// write tests small objects, such as manifests. It returns false if the place cannot be used.
func (r *rights) write(ctx context.Context) bool {
	err := r.dest.Put(ctx, r.name, content(1), load.AnyVersion)
	if err != nil { // its answer may be all that was lost
		later, cancel := load.Lingering(ctx, cleanupTime)
		_ = r.dest.Delete(later, r.name)
		cancel()
	}
	if awayOrBarred(err) {
		r.unusable(err)
		return false
	}
	if err != nil {
		r.fail(writes, err)
		r.why = "nothing could be written"
		return true
	}
	defer r.remove(ctx)
	r.ok(writes, "a small object was written")
	if found, err := r.dest.List(ctx, r.name); err == nil && !slices.Contains(load.NamesOf(found), r.name) {
		r.fail(lists, &load.IOError{Op: "list", Path: r.name, Hint: "use a store whose listings are consistent", Err: errors.New("what was written is not listed")})
	}
	data, version, err := r.dest.Get(ctx, r.name)
	switch {
	case err != nil:
		r.fail(reads, err)
		r.why = "nothing could be read"
		return true
	case !bytes.Equal(data, content(1)):
		r.fail(reads, &load.IOError{Op: "read", Path: r.name, Hint: "look what stands between this machine and the store", Err: errors.New("other bytes came than were written")})
	}
	r.ok(reads, "it was read back")
	r.condition(ctx, version)
	return true
}

// condition tests that a write is refused whose condition does not hold. version is that
// of the probe object.
func (r *rights) condition(ctx context.Context, version string) {
	created := r.dest.Put(ctx, r.name, content(2), load.NoVersion)
	replaced := r.dest.Put(ctx, r.name, content(3), version)
	stale := r.dest.Put(ctx, r.name, content(4), version)
	switch {
	case replaced != nil:
		r.fail(conditional, replaced)
	case created == nil, stale == nil:
		r.fail(conditional, errUnguarded)
	case !errors.Is(created, load.ErrConflict):
		r.fail(conditional, created)
	case !errors.Is(stale, load.ErrConflict):
		r.fail(conditional, stale)
	default:
		r.ok(conditional, "a second creation and a write over a newer version were refused")
	}
}

var errUnguarded = &load.CreateError{
	Op: "use", Path: "the place", Hint: "use a store or version that honours conditional writes",
	Err: errors.New("it writes although the condition of the write does not hold, so that two runs could write at once"),
}

// stage tests a data object up to the step before it becomes visible.
func (r *rights) stage(ctx context.Context) {
	err := r.prepare(ctx)
	if err != nil {
		r.fail(stages, err)
		return
	}
	r.ok(stages, "a data object was staged and taken back")
}

func (r *rights) prepare(ctx context.Context) (err error) {
	upload, err := r.dest.Stage(ctx, r.run, "_formetl-doctor")
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
	err = r.dest.Check(ctx, prepared)
	ctx, cancel := load.Lingering(ctx, cleanupTime)
	defer cancel()
	return errors.Join(err, r.dest.Abort(ctx, prepared))
}

// remove removes the probe object, also after a stop, and tests that it is gone.
func (r *rights) remove(ctx context.Context) {
	ctx, cancel := load.Lingering(ctx, cleanupTime)
	defer cancel()
	if err := r.dest.Delete(ctx, r.name); err != nil {
		r.fail(removes, err)
		return
	}
	if _, _, err := r.dest.Get(ctx, r.name); err == nil {
		r.fail(removes, &load.IOError{Op: "remove", Path: r.name, Hint: "look whether the bucket keeps objects (object lock, retention)", Err: errors.New("it is still there after it was removed")})
		return
	}
	r.ok(removes, "it was removed again")
}

// ok adds a check that went well, unless that of this name failed before.
func (r *rights) ok(name, detail string) {
	if _, failed := r.found[name]; !failed {
		r.found[name] = Check{Name: name, State: OK, Detail: detail}
	}
}

func (r *rights) fail(name string, err error) {
	what, cure := told(err)
	r.found[name] = Check{Name: name, State: Failed, Detail: what, Cure: cure, Err: err}
}

// told divides an error of a destination into what failed and what to do.
func told(err error) (what, cure string) {
	create, isCreate := errors.AsType[*load.CreateError](err)
	failed, isIO := errors.AsType[*load.IOError](err)
	away, isAway := errors.AsType[*load.TemporaryError](err)
	denied, isDenied := errors.AsType[*load.DeniedError](err)
	unfit, isUnfit := errors.AsType[*load.TableError](err)
	switch {
	case isDenied:
		cure = denied.Hint
	case isUnfit:
		cure = unfit.Hint
	case isCreate:
		cure = create.Hint
	case isIO:
		cure = failed.Hint
	case isAway:
		cure = away.Hint
	}
	if cure == "" {
		return err.Error(), "check the place, its rights and the network"
	}
	return strings.Replace(err.Error(), "; "+cure, "", 1), cure
}
