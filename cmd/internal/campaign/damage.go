package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/formetl/formetl/cmd/internal/readback"
)

// stepCleanUnlisted removes the parts that no manifest lists.
const stepCleanUnlisted = "clean --unlisted"

// The kinds of damages.
const (
	damagePart     = "a part that is gone or empty"
	damageManifest = "a manifest that is gone or damaged"
	damageUnlisted = "a part that no manifest lists"
	damageForeign  = "a file of another program"
	damageRows     = "rows of a table that are gone"
)

// damage is what somebody did to an output between runs.
type damage struct {
	kind string
	out  *output
	span readback.Span // of the part, if it is one
	full bool          // only a run that replaces everything heals it
	away string        // the file that is to be moved away first
}

// explains tells whether a run may end with a code because of the damage.
func (d *damage) explains(code int) bool {
	switch d.kind {
	case damagePart, damageRows:
		return code == 65 && d.full // any other part is made again
	case damageManifest, damageUnlisted:
		return code == 73
	}
	return false
}

// harm lets somebody damage an output, sometimes, while no run is unfinished.
func (l *life) harm() error {
	if l.lawful || l.def.unfinished != none || !l.copes() || !chance(l.random, 22) {
		return nil
	}
	out := l.def.outputs[l.random.IntN(len(l.def.outputs))]
	if out.last == nil || out.last.Manifest == nil {
		return nil
	}
	kind := pick(l.random, damagePart, damagePart, damageManifest, damageUnlisted, damageForeign, damageManifest)
	if out.DSN != "" {
		kind = damageRows
	}
	act := map[string]func(*rand.Rand) (string, *damage, error){
		damagePart: out.harmPart, damageManifest: out.harmManifest, damageUnlisted: out.addUnlisted, damageForeign: out.addForeign,
		damageRows: func(random *rand.Rand) (string, *damage, error) { return l.site.database.harm(random, out) },
	}[kind]
	what, d, err := act(l.random)
	if err != nil || what == "" {
		return err
	}
	l.told = append(l.told, "   somebody "+what)
	l.figures["damages"]++
	if d != nil {
		l.damages = append(l.damages, d)
		out.damaged = true
	}
	out.last, _ = l.def.Look(&out.Output) // it is damaged
	return nil
}

// harmPart removes or empties a part, or a single file.
func (o *output) harmPart(random *rand.Rand) (string, *damage, error) {
	parts := o.last.Manifest.Parts
	if len(parts) == 0 {
		return "", nil, nil
	}
	p := parts[random.IntN(len(parts))]
	file := filepath.Join(o.Dir, filepath.FromSlash(p.Path))
	d := &damage{kind: damagePart, out: o, span: p.Span, full: p.Undated}
	if chance(random, 50) {
		return "removes " + file, d, os.Remove(file)
	}
	return "empties " + file, d, os.Truncate(file, 0)
}

// harmManifest removes a manifest or renames one of its keys.
func (o *output) harmManifest(random *rand.Rand) (string, *damage, error) {
	file := filepath.Join(o.Dir, readback.ManifestName)
	if !o.Dataset() {
		file = filepath.Join(o.Dir, o.Name+".manifest.json")
	}
	d := &damage{kind: damageManifest, out: o, full: true}
	if chance(random, 50) {
		return "removes " + file, d, os.Remove(file)
	}
	data, err := os.ReadFile(file)
	if err == nil {
		key := pick(random, `"parts"`, `"format"`, `"schema"`, `"rows"`)
		err = os.WriteFile(file, bytes.Replace(data, []byte(key), []byte(`"unknown"`), 1), 0o600)
		d.away = file
	}
	return "renames a key of " + file, d, err
}

var generation = regexp.MustCompile(`-(\d{6})-(\d{4}\.)`)

// addUnlisted leaves a copy of a part of another generation.
func (o *output) addUnlisted(random *rand.Rand) (string, *damage, error) {
	parts := o.last.Manifest.Parts
	if !o.Dataset() || len(parts) == 0 {
		return "", nil, nil
	}
	p := parts[random.IntN(len(parts))]
	name := generation.ReplaceAllStringFunc(p.Path, func(m string) string {
		n, _ := strconv.Atoi(m[1:7]) // it is a number
		return fmt.Sprintf("-%06d-%s", n+1, m[8:])
	})
	file := filepath.Join(o.Dir, filepath.FromSlash(name))
	return "leaves " + file, &damage{kind: damageUnlisted, out: o}, os.WriteFile(file, o.last.Files[p.Path], 0o600)
}

// addForeign leaves a file that is none of formetl's.
func (o *output) addForeign(random *rand.Rand) (string, *damage, error) {
	if !o.Dataset() {
		return "", nil, nil
	}
	file := filepath.Join(o.Dir, pick(random, "foreign.txt", "foreign"+o.Extension, "_foreign", "foreign/readme.md"))
	err := os.MkdirAll(filepath.Dir(file), 0o750)
	if err == nil {
		err = os.WriteFile(file, []byte("not of formetl\n"), 0o600)
	}
	return "leaves " + file, nil, err
}

// heal applies the cures that formetl names, which must work.
func (l *life) heal() error {
	defer func() { l.damages = nil }()
	for _, d := range l.damages {
		if err := l.cure(d); err != nil {
			return err
		}
	}
	return nil
}

func (l *life) cure(d *damage) error {
	if !d.out.damaged {
		return nil // a run has healed it
	}
	s := calm(stepFull)
	if d.away != "" {
		if err := os.Remove(d.away); err != nil {
			return err
		}
	}
	switch {
	case d.kind == damagePart && !d.full && !l.def.DatesIgnored:
		s.kind, s.from, s.to = stepRange, d.span.From.Time, d.span.To.Time
		if s.from.IsZero() {
			s.from = l.people.begin.AddDate(0, -2, 0)
		}
	case d.kind == damageRows && !d.full:
		s.kind = stepRun
	case d.kind == damageUnlisted && chance(l.random, 50):
		if err := l.take(calm(stepCleanUnlisted)); err != nil {
			return err
		}
		l.damages = nil
		s.kind = stepRun
	}
	if err := l.take(s); err != nil {
		return err
	}
	if d.out.damaged {
		return l.wrong(s, nil, fmt.Errorf("the cure of %s has not healed %s", d.kind, &d.out.Output))
	}
	return nil
}

// end makes everything well, and sets what is left against the truth.
func (l *life) end() error {
	for _, kind := range []string{stepRun, stepFull, stepExport} {
		if err := l.take(calm(kind)); err != nil {
			return err
		}
		last := l.told[len(l.told)-1]
		if said := !l.copes() && strings.Contains(last, "ended with 65 "); !said && !strings.Contains(last, "ended with 0 ") {
			return fmt.Errorf("nobody disturbed it: %s", last)
		}
	}
	if err := l.take(calm(stepClean)); err != nil {
		return err
	}
	folders := []string{l.site.dir}
	for _, out := range l.def.outputs {
		folders = append(folders, out.Dir)
	}
	var unwritten error
	if l.site.database != nil {
		unwritten = l.site.database.unwritten(l.key)
	}
	return errors.Join(l.def.leftovers(), l.key.unwritten(folders...), unwritten)
}

// leftovers makes sure that nothing is left where formetl works.
func (d *definition) leftovers() error {
	for _, out := range d.outputs {
		for _, name := range slices.Sorted(maps.Keys(out.last.Files)) {
			if strings.HasPrefix(name, ".formetl/") && !strings.HasPrefix(name, ".formetl/lock") {
				return fmt.Errorf("after clean there is left %s of %s", name, &out.Output)
			}
		}
	}
	return nil
}
