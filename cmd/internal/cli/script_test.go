package cli

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
)

var update = flag.Bool("update", false, "rewrite the golden files inside the scripts")

// TestScripts runs the real commands, each in a process of its own, against a
// real HTTP service. Besides testscript's commands the scripts know:
//
//	[slow]                    slow scripts are asked for, see needs.Slow
//	exits CODE COMMAND...     the command ends with that exit code
//	define FILE               replaces $BASE_URL and $CROOKED_URL in a file
//	faults LIST               the service's faults from here on, - for none
//	asked TRANSACTION N       the service was asked so often since the last reset
//	forget                    empties the service's log
//	tree DIR                  lists a folder on standard output
//	sums PATH...              SHA-256 of files, of folders all but manifests
//	rows FILE N               a Parquet or Arrow file holds so many rows
//	unpack FILE NEW           decompresses a .gz or .zst file
//	jsonlines FILE            every line is a JSON object, no key in it twice
func TestScripts(t *testing.T) {
	params := scripts(t, func() *formservice.Server {
		return &formservice.Server{Key: testKey, Accounts: []string{"other"}, Forms: []*formservice.Form{smallForm(), largeForm("orders", 450), hostileForm(), uploadsForm()}, API: formservice.Both, Files: true}
	})
	params.Dir = filepath.Join("testdata", "script")
	testscript.Run(t, params)
}

// scripts is how scripts are run, each with a service of its own.
func scripts(t *testing.T, serve func() *formservice.Server) testscript.Params {
	crookedURL := newCrooked(t)
	return testscript.Params{
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			service := serve()
			server := httptest.NewServer(service)
			e.Defer(server.Close)
			e.Values["service"] = service
			e.Setenv("BASE_URL", server.URL)
			e.Setenv("CROOKED_URL", crookedURL)
			e.Setenv("FORMETL_BASE_URL", server.URL)
			e.Setenv("FORMETL_API", "v1")
			e.Setenv("FORMETL_ACCOUNT", formservice.DefaultAccount)
			e.Setenv("FORMETL_TIMEZONE", "America/Chicago")
			e.Setenv("FORMETL_API_KEY", testKey)
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, ".cache"))
			e.Setenv("TZ", "UTC")
			e.Setenv("GORACE", raceOptions)
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "slow" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return needs.Programs(), nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": cmdExits, "define": cmdDefine, "faults": cmdFaults, "asked": cmdAsked, "forget": cmdForget,
			"tree": cmdTree, "sums": cmdSums, "rows": cmdRows, "unpack": cmdUnpack, "jsonlines": cmdJSONLines,
		},
	}
}

// hostileForm is listed under a name that would leave its folder.
func hostileForm() *formservice.Form {
	f := formservice.NewForm("../evil", nil, nil)
	f.ID, f.Name, f.Description = "1666", "Evil", ""
	return f
}

func serviceOf(ts *testscript.TestScript) *formservice.Server {
	return ts.Value("service").(*formservice.Server)
}

func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("%s ended with %d, want %s", strings.Join(args[1:], " "), code, args[0])
	}
}

func cmdDefine(ts *testscript.TestScript, _ bool, args []string) {
	for _, file := range args {
		text := ts.ReadFile(file)
		for _, name := range []string{"BASE_URL", "CROOKED_URL"} {
			text = strings.ReplaceAll(text, "$"+name, ts.Getenv(name))
		}
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(text), 0o600))
	}
}

func cmdFaults(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: faults LIST")
	}
	faults := formservice.Faults(strings.TrimPrefix(args[0], "-"))
	ts.Check(faults.Validate())
	serviceOf(ts).SetFaults(faults)
}

func cmdAsked(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: asked TRANSACTION N")
	}
	n := strconv.Itoa(serviceOf(ts).Counts()[args[0]])
	if (n == args[1]) == neg {
		ts.Fatalf("the service was asked for %s %s times: %v", args[0], n, serviceOf(ts).Counts())
	}
}

func cmdForget(ts *testscript.TestScript, _ bool, _ []string) { serviceOf(ts).Reset() }

// filesUnder lists the files of a path, itself if it is one, sorted.
func filesUnder(ts *testscript.TestScript, path string) []string {
	var files []string
	ts.Check(filepath.WalkDir(ts.MkAbs(path), func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, p)
		}
		return err
	}))
	slices.Sort(files)
	return files
}

func relative(ts *testscript.TestScript, file string) string {
	r, err := filepath.Rel(ts.MkAbs("."), file)
	ts.Check(err)
	return filepath.ToSlash(r)
}

func cmdTree(ts *testscript.TestScript, _ bool, args []string) {
	for _, path := range args {
		for _, file := range filesUnder(ts, path) {
			fmt.Fprintln(ts.Stdout(), relative(ts, file))
		}
	}
}

func cmdSums(ts *testscript.TestScript, _ bool, args []string) {
	for _, path := range args {
		for _, file := range filesUnder(ts, path) {
			name := filepath.Base(file)
			if strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".manifest.json") {
				continue
			}
			data, err := os.ReadFile(file)
			ts.Check(err)
			fmt.Fprintf(ts.Stdout(), "%x  %s\n", sha256.Sum256(data), relative(ts, file))
		}
	}
}

func cmdRows(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: rows FILE N")
	}
	data := []byte(ts.ReadFile(args[0]))
	n, err := rowsIn(args[0], data)
	ts.Check(err)
	if strconv.FormatInt(n, 10) != args[1] {
		ts.Fatalf("%s holds %d rows, want %s", args[0], n, args[1])
	}
}

func rowsIn(name string, data []byte) (int64, error) {
	if strings.HasSuffix(name, ".parquet") {
		f, err := file.NewParquetReader(bytes.NewReader(data))
		if err != nil {
			return 0, err
		}
		defer func() { _ = f.Close() }() // read only
		return f.NumRows(), nil
	}
	r, err := ipc.NewFileReader(bytes.NewReader(data))
	if err != nil {
		return 0, err
	}
	defer func() { _ = r.Close() }()
	n := int64(0)
	for i := range r.NumRecords() {
		batch, err := r.RecordBatchAt(i)
		if err != nil {
			return 0, err
		}
		n += batch.NumRows()
		batch.Release()
	}
	return n, nil
}

func cmdUnpack(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: unpack FILE NEW")
	}
	packed := strings.NewReader(ts.ReadFile(args[0]))
	var r io.Reader
	var err error
	if strings.HasSuffix(args[0], ".gz") {
		r, err = gzip.NewReader(packed)
	} else {
		r, err = zstd.NewReader(packed)
	}
	ts.Check(err)
	data, err := io.ReadAll(r)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), data, 0o600))
}

func cmdJSONLines(ts *testscript.TestScript, _ bool, args []string) {
	for _, file := range args {
		n := 0
		for line := range strings.Lines(ts.ReadFile(file)) {
			n++
			if _, _, err := logLine(line); err != nil {
				ts.Fatalf("line %d of %s: %v", n, file, err)
			}
		}
		if n == 0 {
			ts.Fatalf("%s is empty", file)
		}
	}
}
