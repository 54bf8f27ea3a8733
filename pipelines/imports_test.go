package pipelines

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const modulePath = "github.com/formetl/formetl"

// listedPackage is what `go list -json` says of a package. Imports are those
// of its shipped files, tests left out.
type listedPackage struct {
	ImportPath string
	Imports    []string
}

func goList(t *testing.T, arguments ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, arguments...)...)
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			t.Fatalf("go list %v: %v\n%s", arguments, err, failed.Stderr)
		}
		t.Fatal(err)
	}
	return out
}

// layer is a part of the program: a package and those below it.
type layer struct {
	path   string
	module []string // the module's packages that it may import, with those below them
	others []string // other modules that it may import; nil: none, "*": any that is not for tests only
}

// layers draws design.md's direction of imports. A package belongs to the
// first entry that holds it; "pipelines!" is the package alone, so that each room
// of pipelines needs an entry of its own.
func layers() []layer {
	return []layer{
		// What tests need is asked for in every room, and by no shipped file.
		{"load/loadtest/needs", nil, nil},
		{"load/loadtest!", []string{"load/loadtest/needs", "load!", "load/internal"}, []string{"*"}},
		{"load/loadtest/", []string{"load/loadtest/needs", "load!", "load/internal"}, []string{"*"}},
		{"extract/formservice", []string{"extract/formservice"}, nil},
		{"extract/extracttest", []string{"extract!", "extract/page", "extract/transport", "extract/v1", "extract/v2", "extract/formservice"}, nil},
		{"extract/page", nil, nil},
		{"extract/transport", nil, []string{"github.com/cenkalti/backoff/", "github.com/klauspost/compress/gzhttp", "golang.org/x/net/http/httpproxy"}},
		{"extract/v1", []string{"extract!", "extract/page", "extract/transport"}, nil},
		{"extract/v2", []string{"extract!", "extract/page", "extract/transport"}, nil},
		{"extract", []string{"extract/page", "extract/transport"}, []string{"golang.org/x/sync/"}},
		{"schemas/plain", nil, nil},
		{"schemas/ddl", []string{"schemas!", "schemas/plain"}, nil},
		{"schemas/labels", []string{"schemas!", "schemas/plain"}, nil},
		// Labels become names with the help of Unicode tables.
		{"schemas", []string{"schemas/plain"}, []string{"github.com/apache/arrow-go/v18/arrow", "github.com/mozillazg/go-unidecode", "golang.org/x/text/unicode/"}},
		{"transform", []string{"extract/page", "schemas", "transform/internal"}, []string{"*"}},
		{"load/idset", nil, nil},
		{"load/", []string{"load!", "load/idset", "load/internal"}, []string{"*"}},
		{"load", []string{"load/idset", "load/internal"}, []string{"*"}},
		{"pipelines/definition", []string{"extract!", "extract/transport", "schemas", "load!"}, []string{"github.com/prometheus/common/model", "go.yaml.in/yaml/v3"}},
		{"pipelines/checkpoint", []string{"transform!", "schemas!", "extract!", "extract/page", "load!", "load/idset"}, []string{"*"}},
		{"pipelines/reading", []string{"extract!", "extract/page", "pipelines/checkpoint", "pipelines/definition", "transform!", "schemas!", "load!", "load/idset"}, []string{"*"}},
		{"pipelines/reconcile", []string{"pipelines/definition", "pipelines/reading", "pipelines/checkpoint", "extract!", "extract/page", "load!", "load/idset", "schemas!", "schemas/plain", "transform!"}, []string{"*"}},
		{"pipelines/output", []string{"pipelines/definition", "pipelines/checkpoint", "pipelines/reading", "pipelines/reconcile", "extract!", "load!", "load/idset", "schemas!", "schemas/plain", "transform!"}, []string{"*"}},
		{"pipelines/uploads", []string{"pipelines/definition", "pipelines/reading", "pipelines/reconcile", "pipelines/output", "extract!", "extract/page", "extract/transport", "load!", "load/idset", "schemas!"}, []string{"*"}},
		{"pipelines/upkeep", []string{
			"pipelines!", "pipelines/checkpoint", "pipelines/definition", "pipelines/output", "pipelines/reading", "pipelines/reconcile",
			"extract!", "extract/page", "extract/transport", "load!", "load/idset", "schemas!", "schemas/plain", "transform!",
		}, []string{"golang.org/x/sync/errgroup", "github.com/apache/arrow-go/v18/arrow"}},
		{"pipelines/pipelinestest", []string{"extract/formservice", "extract/transport", "pipelines!", "pipelines/definition", "pipelines/output", "schemas!", "load"}, nil},
		{"pipelines!", []string{
			"pipelines/checkpoint", "pipelines/definition",
			"pipelines/output", "pipelines/reading", "pipelines/reconcile", "pipelines/uploads", "extract!", "extract/page", "extract/transport", "extract/v1", "extract/v2", "transform!", "load!", "load/idset", "schemas!", "schemas/plain",
		}, []string{"*"}},
		{"cmd/internal", []string{""}, []string{"*"}},
		{"cmd/formserver", []string{"extract/formservice"}, nil},
		{"cmd/formetl", []string{"cmd/internal"}, nil},
		{"cmd/formetl-worker", []string{"cmd/internal"}, nil},
	}
}

// forTests are the modules that shipped files may not import: second readers
// and references.
func forTests() []string {
	return []string{"github.com/duckdb/", "github.com/santhosh-tekuri/", modulePath + "/load/loadtest", modulePath + "/internal", modulePath + "/extract/extracttest", modulePath + "/pipelines/pipelinestest"}
}

// isTool tells whether a package is a tool of the tests, which no program that
// is shipped imports. It may import what is for tests.
func isTool(importPath string) bool {
	for _, tool := range []string{"/cmd/internal/bench", "/cmd/internal/campaign", "/load/loadtest"} {
		if importPath == modulePath+tool || strings.HasPrefix(importPath, modulePath+tool+"/") {
			return true
		}
	}
	return false
}

// allowed tells whether a layer may import a package. "extract!" is the
// package alone, without those below it.
func (l layer) allowed(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	switch {
	case imported == modulePath || strings.HasPrefix(imported, modulePath+"/"):
		inside := strings.TrimPrefix(strings.TrimPrefix(imported, modulePath), "/")
		return slices.ContainsFunc(l.module, func(m string) bool {
			name, alone := strings.CutSuffix(m, "!")
			return inside == name || m == "" || (!alone && strings.HasPrefix(inside, name+"/"))
		})
	case !strings.Contains(first, "."):
		return true // the standard library
	}
	return slices.ContainsFunc(l.others, func(o string) bool { return o == "*" || strings.HasPrefix(imported, o) })
}

func layerOf(importPath string) (layer, bool) {
	inside := strings.TrimPrefix(importPath, modulePath+"/")
	for _, l := range layers() {
		path, alone := strings.CutSuffix(l.path, "!")
		if below := strings.TrimSuffix(path, "/") + "/"; inside == path || !alone && strings.HasPrefix(inside, below) {
			return l, true
		}
	}
	return layer{}, false
}

func TestImportDirection(t *testing.T) {
	// Without cgo there is no library of DuckDB, but -e lists what imports it.
	decoder := json.NewDecoder(strings.NewReader(string(goList(t, "-e", "-json=ImportPath,Imports", "./..."))))
	seen := 0
	for {
		var p listedPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		seen++
		l, known := layerOf(p.ImportPath)
		if !known {
			t.Errorf("%s is in no layer of design.md: give it a place in layers()", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			if !l.allowed(imported) {
				t.Errorf("%s imports %s, against the direction of design.md", p.ImportPath, imported)
			}
			for _, m := range forTests() {
				if strings.HasPrefix(imported, m) && !isTool(p.ImportPath) {
					t.Errorf("%s imports %s outside its tests", p.ImportPath, imported)
				}
			}
			if strings.HasPrefix(imported, "github.com/aws/") && p.ImportPath != modulePath+"/load/s3" {
				t.Errorf("%s imports %s: the S3 SDK stays behind load/s3", p.ImportPath, imported)
			}
			if strings.HasPrefix(imported, "go.temporal.io/") && p.ImportPath != modulePath+"/cmd/internal/worker" {
				t.Errorf("%s imports %s: Temporal stays behind cmd/internal/worker", p.ImportPath, imported)
			}
			if imported == modulePath+"/cmd/internal/worker" && p.ImportPath != modulePath+"/cmd/formetl-worker" {
				t.Errorf("%s imports %s: formetl-worker alone links Temporal", p.ImportPath, imported)
			}
			if strings.HasPrefix(imported, "github.com/jackc/") && p.ImportPath != modulePath+"/load/postgres" && !isTool(p.ImportPath) {
				t.Errorf("%s imports %s: the driver of PostgreSQL stays behind load/postgres", p.ImportPath, imported)
			}
			if imported == modulePath+"/load/s3" && p.ImportPath != modulePath+"/cmd/internal/console" {
				t.Errorf("%s imports %s: the S3 SDK is linked by console alone", p.ImportPath, imported)
			}
		}
	}
	if seen < 8 {
		t.Errorf("go list names only %d packages", seen)
	}
}

// The program links nothing that only tests need. gRPC, arrow/compute and testing come
// with pqarrow.
func TestProgramLinksOnlyWhatItNeeds(t *testing.T) {
	packages := strings.Fields(string(goList(t, "-deps", "./cmd/formetl")))
	if !slices.Contains(packages, modulePath+"/pipelines") {
		t.Error("the program does not contain pipelines")
	}
	unwanted := append(forTests(), modulePath+"/cmd/internal/campaign", modulePath+"/cmd/internal/worker", "go.temporal.io/",
		"github.com/cpuguy83/go-md2man")
	for _, p := range packages {
		for _, u := range unwanted {
			if strings.HasPrefix(p, u) {
				t.Errorf("the program links %s", p)
			}
		}
	}
}
