package pipelines_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// lettered is a form of whole numbers over three months whose service stamps each
// change. Some answers are no numbers, so that their results are rejected.
type lettered struct {
	*living
	clock time.Time
}

func newLettered(t *testing.T, outs ...definition.Output) *lettered {
	t.Helper()
	var results []formservice.Result
	for id := int64(1); id <= 90; id++ {
		at := extracttest.Wall("2025-10-01 09:30:00").AddDate(0, 0, int(id-1)).Format(formservice.WallTime)
		answer := fmt.Sprint(id)
		if id%20 == 5 {
			answer = fmt.Sprintf("number %d", id)
		}
		r := pipelinestest.Result(id, at, answer)
		r.Metas = append(r.Metas, formservice.Meta{ID: "date_update", Value: at})
		results = append(results, r)
	}
	form := formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}, results)
	l := &lettered{living: &living{world: newWorld(t, form), form: form, o: options(), outs: outs}}
	l.edit = func(def *definition.Definition) {
		def.Schema, def.Extract.Lookback = numbers(""), definition.DefaultLookback
	}
	form.SetClock(func() time.Time { return l.clock })
	l.at("2026-01-01 00:00:30")
	l.answer(40, "40") // the service shows that it sorts
	return l
}

func (l *lettered) at(wall string) {
	l.clock = extracttest.Wall(wall)
	l.now(wall)
}

// answer edits a result, and moves it where a date is given.
func (l *lettered) answer(id int64, answer string, date ...string) {
	l.t.Helper()
	r, _ := l.form.Get(id)
	r.Items = []formservice.Answer{{ID: "1", Type: "text", Index: 1, Values: []string{answer}}}
	r.Metas = slices.Clone(r.Metas)
	for i := range r.Metas {
		if r.Metas[i].ID == "date_finish" && len(date) > 0 {
			r.Metas[i].Value = date[0]
		}
	}
	if err := l.form.Update(r); err != nil {
		l.t.Fatal(err)
	}
}

// check compares rows and dead letters of every output with the form.
func (l *lettered) check(when string) {
	l.t.Helper()
	want, rows := map[int64]string{}, 0
	for _, r := range pipelinestest.Truth(l.form, nil) {
		answer := r.Items[0].Values[0]
		if _, err := strconv.Atoi(answer); err != nil {
			want[r.ID] = answer
		} else {
			rows++
		}
	}
	for _, out := range l.outs {
		var names []string
		if out.Dataset() {
			m := readManifest(l.t, filepath.Join(l.path(out.Path), load.ManifestName))
			rejected := int64(0)
			for _, p := range m.Parts {
				rejected += p.Rejected
				if p.Letters != "" {
					names = append(names, filepath.Join(l.path(out.Path), load.RejectsName(p.Letters)))
				}
				if (p.Letters != "") != (p.Rejected > 0) {
					l.t.Errorf("%s: %s has %d rejects and letters %q", when, p.Path, p.Rejected, p.Letters)
				}
			}
			there, err := filepath.Glob(filepath.Join(l.path(out.Path), load.RejectsFolder, "*"))
			if err != nil || len(there) != len(names) || m.Rows != int64(rows) || rejected != int64(len(want)) {
				l.t.Errorf("%s, %s: %d of %d rows, %d of %d rejects, dead letters %v, and parts have %d", when, out.Path, m.Rows, rows, rejected, len(want), there, len(names))
			}
		} else if there, err := filepath.Glob(l.path(load.FileRejectsName(out.Path))); err != nil || (len(there) > 0) != (len(want) > 0) {
			l.t.Errorf("%s, %s: dead letters %v of %v, %v", when, out.Path, there, want, err)
		} else {
			names = there
		}
		got := map[int64]string{}
		for _, name := range names {
			data := l.read(strings.TrimPrefix(name, l.dir+"/"))
			if sum := sha256.Sum256([]byte(data)); out.Dataset() && hex.EncodeToString(sum[:])+".jsonl" != filepath.Base(name) {
				l.t.Errorf("%s: %s has another name than its bytes give", when, name)
			}
			for _, letter := range readNDJSON(l.t, name) {
				id := int64(letter["result_id"].(float64)) //nolint:errcheck // of ours
				if _, twice := got[id]; twice {
					l.t.Errorf("%s, %s: %d is there twice", when, out.Path, id)
				}
				got[id] = letter["raw"].(string) //nolint:errcheck // as above
			}
		}
		if !maps.Equal(got, want) {
			l.t.Errorf("%s, %s: dead letters of %v, want %v", when, out.Path, got, want)
		}
	}
}

// onlyLetters is the path of the only dead letters of a dataset.
func (w *world) onlyLetters(dataset string) string {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(w.path(dataset), load.RejectsFolder, "*"))
	if err != nil || len(names) != 1 {
		w.t.Fatalf("dead letters %v, %v", names, err)
	}
	return names[0]
}

// TestDeadLettersAreOfNow: after each run they are of what is rejected now. What was
// mended, moved or deleted at the service is gone from them, and a run that changes
// nothing leaves the same bytes.
func TestDeadLettersAreOfNow(t *testing.T) {
	needs.Slow(t)
	for name, outs := range map[string][]definition.Output{
		"months": {{Path: "out/", Format: "parquet", Partition: definition.PartitionMonth}},
		"none":   {{Path: "out/", Format: "csv"}},
		"file":   {{Path: "out.csv", Format: "csv"}},
		"beside": {{Path: "out.ndjson", Format: "ndjson"}, {Path: "out/", Format: "ndjson", Partition: definition.PartitionMonth}},
	} {
		for _, incremental := range []bool{true, false} {
			if incremental && !outs[0].Dataset() {
				continue
			}
			t.Run(fmt.Sprintf("%s, incremental %t", name, incremental), func(t *testing.T) {
				l := newLettered(t, outs...)
				run := func(when string) {
					t.Helper()
					def := l.definition()
					def.Extract.Incremental = incremental
					if _, err := pipelines.Run(t.Context(), def, l.o); err != nil {
						t.Fatalf("%s: %v", when, err)
					}
					l.check(when)
				}
				run("at first")
				for i, life := range []struct {
					when string
					do   func()
				}{
					{"mended", func() { l.answer(5, "5") }},
					{"deleted", func() { l.form.Delete(25) }},
					{"another row deleted", func() { l.form.Delete(26) }},
					{"rejected by now", func() { l.answer(6, "six") }},
					{"rejected for another value", func() { l.answer(45, "forty-five") }},
					{"rejected and moved", func() { l.answer(65, "sixty-five", "2025-10-20 12:00:00") }},
					{"rejected and moved back", func() { l.answer(65, "65 and more", "2025-12-04 09:30:00") }},
					{"one more beside another", func() { l.insert(200, "2025-12-24 12:00:00", "two hundred") }},
					{"all mended", func() {
						for _, id := range []int64{6, 45, 65, 85, 200} {
							l.answer(id, fmt.Sprint(id))
						}
					}},
				} {
					l.at(fmt.Sprintf("2026-01-01 %02d:00:30", i+1))
					life.do()
					run(life.when)
					before := tree(t, l.dir)
					run(life.when + ", and again")
					after := tree(t, l.dir)
					for _, files := range []map[string]string{before, after} {
						maps.DeleteFunc(files, func(name, _ string) bool {
							return slices.ContainsFunc([]string{"manifest.json", "codebook.csv", "schema.json", load.SuccessName}, func(end string) bool { return strings.HasSuffix(name, end) })
						})
					}
					sameTree(t, before, after)
				}
			})
		}
	}
}
