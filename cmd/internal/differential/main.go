// Command differential takes formetl as it was at an earlier commit and formetl as it is
// now through the same worlds, and tells every difference that a user could notice. It is
// a net under changes that are to change nothing; nobody is shipped it. Call it from the
// project's root:
//
//	go run ./cmd/internal/differential              # fifty worlds
//	go run ./cmd/internal/differential -first 51    # fifty others
//
// A world is a form, a definition, a service with manners of its own, and some ten
// commands with what happens between them (world.go). Each program has a folder and a copy
// of the service of its own. After each command everything that it left to see is compared:
// files, exit code, standard output, and the requests that the service got. Differences that
// are meant stand in the list meant, below. Any other one makes the program end with 1, and
// ends its world, since the rest would only follow from it. The folders of that world are
// kept.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/formetl/formetl/cmd/internal/readback"
	"github.com/formetl/formetl/extract/formservice"
)

// base is the commit that the present tree is compared with: the one before the cuts.
const base = "4747c19"

// meant finds the differences that are meant in the lines that tell them, like
//
//	lake0/_manifest.json: .verified.method: "counts", now "changes"
var meant = regexp.MustCompile(strings.Join([]string{
	`: \S*\.(created_at|started_at|ended_at|watermark_age_seconds|changes\[\d+\]\.count|bytes|sha256): `, // chance, and what the file itself shows
	`\.xlsx: `, // fixed widths, no filters, no core properties
	`\.ids: "[0-9a-f]{64}", now "[0-9a-f]{64}"$`,                                                           // id sets are no RoaringBitmaps any more
	`next_run|[Nn]ext run|dead_letters|stale_(parts|left)|\.(warnings|patterns|unlisted)`,                  // forecasts, letters of failed runs, parts left to later runs, limits of spreadsheets, forms looked for at outputs: no such things
	`json: \.(\S*\.)?(columns|api|labels_before|labels_before\[\d+\]|index): |codebook\.csv: |"reordered"`, // digests of columns, the generation, earlier headings and places are not kept
	`report\.json: .*\.(planned|spans)`,                                                                    // what the page of a run shows is in its report
	`^output of \(schema (ddl.*: "I+", now ""$|ddl.*: "II+", now "I+"$|diff.*(\| reordered |\bretyped\b))`, // ddl prints no loads, nor what a run added to declared columns of a single file; diff may tell one column that moved as several, and tells values that do not fit last
	`\.(requests\.(results|count)|request_outcomes\.ok): |^request of run: v[12] results.*(((fs_search|after_id).*|fs_min_id=\d+&fs_sort_direction=asc&fs_include_headings): "", now "I"|(min|after)_id=\d+&(fs_max|before)_id=\d+.*: "I+", now "I?"$)`, // where no count can be compared, a run asks once more behind what changed while it read; it asks less for where a result is that it found
	`^request of run: v[12] results (\S*(max|before)_id=\d+&\S*|limit=1&sort_direction=desc): "", now "I"$`,                                                                                                                                             // a form that changes while it is counted is searched for results without a date among the ids there are
	`^(request|end|output) of \(?preview.*(: "I", now ""|"exit status 65", now .*|: "", now .*|"\[\]string", now .*)$`,                                                                                                                                  // a look knows its last page, and no column comes too late for it
}, "|"))

// guarded tells whether two lines of CSV for Excel differ only in the ' in front of cells:
// what is no formula lost it.
func guarded(was, now string) bool {
	return strings.ReplaceAll(was, "'", "") == strings.ReplaceAll(now, "'", "")
}

// building builds formetl of a commit, in a work tree that it removes again, and that of
// the present tree. Paths are left out, so that the compiler's cache serves both.
const building = `set -e
trap 'git worktree remove --force "$0/tree"' EXIT
git worktree add --detach "$0/tree" "$1"
build() { go build -buildvcs=false -trimpath -tags formetl_faults "$@" ./cmd/formetl; }
(cd "$0/tree" && build -o "$0/base")
build -o "$0/present"`

func main() {
	first := flag.Int("first", 1, "number of the first world")
	flag.Parse()
	dir := must(os.MkdirTemp("", "formetl-differential-"))
	if said, err := exec.CommandContext(context.Background(), "sh", "-c", building, dir, base).CombinedOutput(); err != nil {
		check(fmt.Errorf("cannot build: %w\n%s", err, said))
	}
	began, different := time.Now(), 0
	for n := *first; n < *first+50; n++ {
		if found := live(newWorld(n), dir); len(found) > 0 {
			different++
			fmt.Printf("== world %d; repeat it with -first %d\n%s\n", n, n, strings.Join(found, "\n"))
		}
	}
	check(os.RemoveAll(dir))
	fmt.Printf("%d worlds differ from %s in what is not meant, in %s\n", different, base, time.Since(began).Round(time.Second))
	os.Exit(min(1, different))
}

// live takes both programs through a world until they differ in what is not meant, and
// tells the first differences of that step.
func live(w *world, dir string) []string {
	kept := must(os.MkdirTemp("", "formetl-world-"))
	was, is := newSide(w, dir+"/base", kept), newSide(w, dir+"/present", kept)
	defer was.http.Close()
	defer is.http.Close()
	for i, t := range w.steps {
		if found := differences(was.take(w, t), is.take(w, t)); len(found) > 0 {
			return append(found[:min(12, len(found))], fmt.Sprintf("%d differences after step %d, %+v; all is kept in %s", len(found), i+1, t, kept))
		}
	}
	check(os.RemoveAll(kept))
	return nil
}

// differences tells what differs between two sights and is not meant, a line each.
func differences(base, present sight) (found []string) {
	for name := range present {
		base[name] += "" // so that each name is there
	}
	for name, was := range base {
		if line := fmt.Sprintf("%s: %.300q, now %.300q", name, was, present[name]); was != present[name] && !meant.MatchString(line) && !guarded(was, present[name]) {
			found = append(found, line)
		}
	}
	return slices.Sorted(slices.Values(found))
}

// side is one of the two programs in a world.
type side struct {
	program, dir string
	form         *formservice.Form
	service      *formservice.Server
	http         *httptest.Server
	clock        time.Time    // of the program and the service; each change takes two seconds
	weather      atomic.Value // the formservice.Fault that some requests meet
}

// newSide gives a program a folder in another one, and its copy of the service.
func newSide(w *world, program, kept string) *side {
	s := &side{program: must(exec.LookPath(program)), dir: must(os.MkdirTemp(kept, filepath.Base(program))), form: w.makeForm(), clock: now}
	s.form.SetClock(func() time.Time {
		s.clock = s.clock.Add(2 * time.Second)
		return s.clock.In(w.zone)
	})
	s.service = &formservice.Server{Forms: []*formservice.Form{s.form}, API: formservice.Both, Zone: w.zone, Decide: s.decide}
	s.http = httptest.NewServer(s.service)
	check(os.WriteFile(s.dir+"/net.yaml", []byte(strings.ReplaceAll(w.definition, "URL", s.http.URL)), 0o600))
	check(os.WriteFile(s.dir+"/schema.yaml", []byte(w.schema), 0o600))
	return s
}

// decide lets some requests meet the weather when they come for the first time. Which ones
// follows from what they ask for, because they may come in another order each time.
func (s *side) decide(q formservice.Request) formservice.Fault {
	if crc32.ChecksumIEEE([]byte(q.Query))%6 > 0 || slices.ContainsFunc(s.service.Log(), func(earlier formservice.Request) bool { return earlier.Query == q.Query }) {
		return formservice.NoFault
	}
	return s.weather.Load().(formservice.Fault)
}

// change lets some results be sent, edited, finished, deleted, and moved to another day.
func (s *side) change(lot int) {
	s.service.SetFaults(formservice.Faults{Seed: uint64(lot), InsertEvery: 2, EditEvery: 1, DeleteEvery: 1 + lot%4, FinishEvery: 3}) //nolint:gosec // not negative
	for range lot % 8 {
		s.service.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(context.Background(), "GET", "/api/users/acme/forms/form1/results/count?fs_api_key="+formservice.DefaultKey, nil))
	}
	var moves int64
	s.form.Each(func(r formservice.Result) bool { moves = r.ID; return r.ID%10 != int64(lot%11) })
	_ = s.form.Finish(moves, s.clock.AddDate(0, 0, -lot%20)) // if there is one
}

// take takes a step and returns all that it left to see. The state and what lies in
// .formetl are the program's own affair. How far a run came that did not end well is
// chance, since windows are read side by side: its requests and its report tell nothing.
func (s *side) take(w *world, t step) sight {
	s.clock = s.clock.Add(time.Duration(t.lot) * time.Minute)
	s.weather.Store(formservice.NoFault)
	s.service.Reset()
	s.change(t.lot)
	s.service.Reset()
	_ = os.Remove(s.dir + "/report.json") // if there is one
	s.service.SetFaults(w.service)
	s.weather.Store(t.weather)
	cmd := exec.CommandContext(context.Background(), s.program, strings.Fields(strings.ReplaceAll(t.command, "URL", s.http.URL))...) //nolint:gosec // the program that was built
	cmd.Dir, cmd.Env = s.dir, []string{
		"FORMETL_API_KEY=" + formservice.DefaultKey, "HOME=" + s.dir, "XDG_CACHE_HOME=" + s.dir + "/state", "TZ=UTC",
		"FORMETL_NOW=" + s.clock.Add(time.Minute).Format(time.RFC3339), "FORMETL_BACKOFF=1ms,4ms,1m", "FORMETL_FAULT=" + t.kill,
	}
	stdout, err := cmd.Output()
	seen := sight{"end of " + t.command: cmd.ProcessState.String()}
	s.see(seen, "output of ("+t.command+")", stdout)
	for _, q := range s.service.Log() {
		if err == nil {
			seen["request of "+strings.Fields(t.command)[0]+": "+q.API+" "+q.Transaction+" "+q.Query] += "I"
		}
	}
	check(filepath.WalkDir(s.dir, func(path string, e os.DirEntry, failed error) error {
		name := strings.TrimPrefix(path, s.dir+"/")
		own := strings.HasPrefix(name, "state/") || strings.Contains(name, ".formetl/") || err != nil && name == "report.json"
		if failed == nil && !own && !e.IsDir() {
			s.see(seen, name, must(os.ReadFile(path)))
		}
		return failed
	}))
	return seen
}

// chances is what differs between two runs of one program: the random half of a run's id,
// and times of this month, by the machine's clock, which some commands go by. No world is now.
var chances = regexp.MustCompile(time.Now().Format("2006-?01") + `-?\d\d[ T][\d:]{6,8}(?:Z-[0-9a-f]{8})?|(\d{8}T\d{6}Z)-[0-9a-f]{8}`)

// idSet finds the name of an id set. How many there are is compared, and not what they are named
// by, which are their bytes; see meant.
var idSet = regexp.MustCompile(`(_ids/)[0-9a-f]{64}\.(roaring|ids)`)

// see adds a text to what is seen. Data must be the same byte for byte, but of a Parquet file
// only the schema, the metadata and the rows that readers see; from anything else
// is left out what belongs to one side alone, and its lines are counted, so that one line
// more is one difference.
func (s *side) see(seen sight, name string, data []byte) {
	if readback.IsData(name) && name != "report.json" && !strings.HasSuffix(name, ".schema.json") {
		if strings.HasSuffix(name, ".parquet") {
			schema, rows, err := readback.ParquetLines(data)
			data = fmt.Append(rows, schema, err)
		}
		for i, line := range strings.Split(string(data), "\n") {
			seen[fmt.Sprintf("%s: line %d", name, i+1)] = line + "\n" // so that an empty file is there too
		}
		return
	}
	if idSet.MatchString(name) {
		seen[idSet.ReplaceAllString(name, "$1")] += "I"
		return
	}
	text := chances.ReplaceAllString(strings.NewReplacer(s.dir, "DIR", s.http.URL, "URL").Replace(string(data)), "$1")
	text = idSet.ReplaceAllString(text, "$1")
	var value any
	if json.Unmarshal([]byte(text), &value) != nil {
		value = strings.Split(text, "\n")
	}
	seen.add(name+": ", value)
}

// sight is what a step left to see: the fields of JSON, the lines of data, and the lines of
// other texts and the requests, which are counted.
type sight map[string]string

// add adds a value with all that is in it.
func (seen sight) add(path string, value any) {
	seen[path] = fmt.Sprintf("%T", value) // what is empty is there too
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			seen.add(path+"."+key, inner)
		}
	case []any:
		for i, inner := range v {
			seen.add(fmt.Sprintf("%s[%d]", path, i), inner)
		}
	case []string:
		for _, line := range v {
			seen[path+"| "+strings.Trim(strings.Join(strings.Fields(line), " "), ",")] += "I"
		}
	default:
		seen[path] = fmt.Sprint(v)
	}
}

// check ends the program where the tool itself fails.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// must returns a value that is there unless the tool itself fails.
func must[T any](value T, err error) T {
	check(err)
	return value
}
