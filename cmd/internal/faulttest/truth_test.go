package faulttest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
)

// job is a definition of one dataset.
type job struct {
	service  string // URL
	requests string // of the source, such as "timeout: 2s"
	extract  string // such as "from: 2025-01-01, to: 2025-02-01"
	part     string // partition
	endpoint string // of S3, "" for disk
	settings string // of the output's s3:, after the endpoint, such as ", part_size: 5MiB"
	state    string // folder, "" beside the definition
	also     place  // a second output like the first, nil for none
}

const jobDefinition = `version: 1
name: faults
source: {base_url: "%s", account: acme, timezone: UTC, requests: {%s}}
forms: [form1]
%sextract: {%s}
load:
`

// definition writes the job's definition into a folder.
func (j job) definition(t testing.TB, dir string, p place) string {
	t.Helper()
	settings, state := "", ""
	if j.endpoint != "" {
		settings = fmt.Sprintf(`, s3: {endpoint: "%s", path_style: true%s}`, j.endpoint, j.settings)
	}
	if j.state != "" {
		state = "state: " + j.state + "\n"
	}
	if j.part == "" {
		j.part = "none"
	}
	text := fmt.Sprintf(jobDefinition, j.service, j.requests, state, j.extract)
	for _, p := range []place{p, j.also} {
		if p != nil {
			text += fmt.Sprintf("  - {path: %q, format: ndjson, partition: %s%s}\n", p.path(), j.part, settings)
		}
	}
	return write(t, dir, "faults.yaml", text)
}

// rows are the lines of a dataset by their result ids.
type rows map[int64]string

// truth is what the job has to write: what an undisturbed run writes into a
// folder. Whether that holds every result is asked of ids.
func (j job) truth(t testing.TB, ids []int64) rows {
	t.Helper()
	dir := t.TempDir()
	calm := folder{filepath.Join(dir, "calm")}
	j.endpoint, j.requests, j.state = "", "", ""
	run(t, dir, nil, "run", j.definition(t, dir, calm)).wantOK(t)
	found := read(t, calm)
	slices.Sort(ids)
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, ids) {
		t.Fatalf("an undisturbed run wrote %d results, the service has %d", len(got), len(ids))
	}
	return found
}

// read reads a dataset by its manifest and checks all that a reader relies on:
// every part is there as listed, nothing else is visible, _SUCCESS is of the
// same run, and each result is there once.
func read(t testing.TB, p place) rows {
	t.Helper()
	objects := p.objects(t)
	if _, there := objects[load.ManifestName]; !there {
		t.Fatalf("there is no manifest among %v", names(objects))
	}
	m, err := load.DecodeManifest(objects[load.ManifestName])
	if err != nil {
		t.Fatal(err)
	}
	if mark := strings.TrimSpace(string(objects[load.SuccessName])); mark != m.RunID {
		t.Errorf("%s holds %q, the manifest is of run %q", load.SuccessName, mark, m.RunID)
	}
	found := rows{}
	known := map[string]bool{load.ManifestName: true, load.SuccessName: true}
	for _, part := range m.Parts {
		known[part.Path], known[load.IDsName(part.IDs)] = true, true
		data := objects[part.Path]
		digest := sha256.Sum256(data)
		if hex.EncodeToString(digest[:]) != part.SHA256 || int64(len(data)) != part.Bytes {
			t.Errorf("%s holds %d bytes and is not what the manifest lists", part.Path, len(data))
		}
		before := len(found)
		for line := range strings.Lines(string(data)) {
			found[idOf(t, line)] = line
		}
		if int64(len(found)-before) != part.Rows {
			t.Errorf("%s gives %d new results, the manifest has %d", part.Path, len(found)-before, part.Rows)
		}
	}
	for _, name := range visible(names(objects)) {
		if !known[name] {
			t.Errorf("%s is left over", name)
		}
	}
	return found
}

// visible are the names of what a reader may take for data or marks.
func visible(names []string) []string {
	var seen []string
	for _, name := range names {
		if !strings.HasPrefix(name, load.ControlFolder+"/") {
			seen = append(seen, name)
		}
	}
	return seen
}

// names are those of objects, in order.
func names(objects map[string][]byte) []string { return slices.Sorted(maps.Keys(objects)) }

func idOf(t testing.TB, line string) int64 {
	t.Helper()
	var row struct {
		ID *int64 `json:"result_id"`
	}
	if err := json.Unmarshal([]byte(line), &row); err != nil || row.ID == nil {
		t.Fatalf("%.100q is no result: %v", line, err)
	}
	return *row.ID
}

// check compares a place with the truth.
func check(t testing.TB, p place, want rows) {
	t.Helper()
	got := read(t, p)
	wrong := 0
	for id, line := range want {
		if got[id] != line {
			wrong++
		}
	}
	if wrong > 0 || len(got) != len(want) {
		t.Errorf("%d results are there, %d are wanted, of which %d are missing or differ", len(got), len(want), wrong)
	}
}

// checkNothingVisible holds that readers see nothing, not even a part.
func checkNothingVisible(t testing.TB, p place) {
	t.Helper()
	if names := visible(names(p.objects(t))); len(names) > 0 {
		t.Errorf("%v can be seen", names)
	}
}

// ids are those of all results of the form.
func (b *bulk) ids() []int64 {
	ids := make([]int64, b.results)
	for i := range ids {
		ids[i] = b.id(i)
	}
	return ids
}
