package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/plain"
)

func demoCommand(p *process) *cobra.Command {
	var f demoSettings
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a sample pipeline against a built-in test service",
		Long: `Demo starts a built-in test service on this machine, runs a sample pipeline against
it over HTTP, writes CSV and Parquet files, and exits. It needs no account, no API
key and no network.

It also writes its definition, feedback.yaml. A folder that is not empty must hold that of
an earlier demo, unchanged: demo replaces that demo's files, and your own stay.`,
		Example: `  formetl demo
  formetl demo --results 200000 --dir /tmp/demo`,
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), p, f) },
	}
	cmd.Flags().IntVar(&f.results, "results", demoResults, "number of results that the service has")
	cmd.Flags().StringVar(&f.dir, "dir", "demo", "folder for the files")
	return cmd
}

func runDemo(ctx context.Context, p *process, f demoSettings) error {
	generate := formservice.GenerateOptions{Directory: "feedback", Name: "Customer feedback", Results: f.results, Seed: 1, NoHostile: true}
	if err := generate.Validate(); err != nil {
		return fmt.Errorf("--results: %w", err)
	}
	o, err := p.start(slog.LevelWarn, new(console.RangeFlags).Options)
	if err != nil {
		return err
	}
	folder := demoFolder(f.dir)
	if err := folder.check(); err != nil {
		return err
	}
	listener, err := listen(ctx)
	if err != nil {
		return err
	}
	text, key := demoDefinition(listener.Addr().String()), rand.Text()
	if err := folder.prepare(text, key); err != nil {
		return errors.Join(err, listener.Close())
	}
	defer startDemoService(listener, key, generate)()
	def, err := definition.Load(folder.file(), console.Checks(context.Background(), p.lookup))
	if err != nil {
		return err
	}
	p.log.HideKey(def.Source.Key)
	p.log.Tell(slog.LevelInfo, fmt.Sprintf("A test service with %s listens on %s.", plain.Plural(f.results, "result"), def.Source.BaseURL))
	bar, _ := p.log.NewProgress(console.ProgressAuto) // fails for an unknown mode only
	started := time.Now()
	stop := bar.Start(ctx, o.Logger, started, p.ticks)
	o.Progress, o.Resume.Within = bar.Update, -1 // the service of an earlier demo has gone
	report, err := pipelines.Run(ctx, def, o)
	stop()
	if err != nil {
		return err
	}
	return console.Print(p.stdout, demoSummary(report, time.Since(started), f, text))
}

// usualAddress is where the demo's service listens, unless the address is in use.
const usualAddress = "127.0.0.1:8420"

// listen listens at usualAddress. If that is in use, it takes a free port.
func listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", usualAddress)
	if err != nil {
		listener, err = lc.Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start the test service on this machine: %w", err)
	}
	return listener, nil
}

// startDemoService starts the embedded test service. stop ends it and waits for it.
func startDemoService(listener net.Listener, key string, generate formservice.GenerateOptions) (stop func()) {
	server := &http.Server{
		Handler:           &formservice.Server{Key: key, Forms: []*formservice.Form{formservice.Generate(generate)}},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelWarn), // standard error holds only the command's own lines
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) }) // ends when stop closes the server
	return func() {
		_ = server.Close()
		serving.Wait()
	}
}

// demoSettings say how many results the demo's service has, and in which folder the demo lies.
type demoSettings struct {
	results int
	dir     string
}

// demoResults is how many results the demo's service has without --results.
const demoResults = 5000

// demoFolder is the folder for the files of the demo, as --dir gives it.
type demoFolder string

func (d demoFolder) path(name string) string {
	return filepath.Join(string(d), filepath.FromSlash(name))
}

// file returns the path of the demo's definition.
func (d demoFolder) file() string { return d.path("feedback.yaml") }

// keyName is the name of the file with the API key of the demo's service.
const keyName = "api-key"

// elsewhere is the hint for a folder that the demo cannot use.
const elsewhere = "choose another folder with --dir"

// check refuses a folder that is not empty, unless the definition in it is as an earlier demo
// wrote it.
func (d demoFolder) check() error {
	names, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0 {
		return nil
	}
	if err != nil {
		return &load.Error{Kind: load.ErrUnusable, Op: "read", Path: string(d), Err: err, Remedy: elsewhere}
	}
	text, _ := os.ReadFile(d.file()) // nil if it is missing
	at := regexp.MustCompile(`base_url: http://(127\.0\.0\.1:\d+)\n`).FindSubmatch(text)
	if at != nil && string(text) == demoDefinition(string(at[1])) {
		return nil
	}
	return &load.Error{
		Kind: load.ErrUnusable, Op: "write to", Path: string(d), Remedy: "move this folder away, or " + elsewhere,
		Err: errors.New("the folder is not empty, and feedback.yaml in it is missing or not as an earlier demo wrote it"),
	}
}

// prepare writes the demo's definition, and the API key of its service. The definition is written
// first, because check recognises a demo's folder by the definition.
func (d demoFolder) prepare(text, key string) error {
	if err := os.MkdirAll(string(d), 0o750); err != nil {
		return &load.Error{Kind: load.ErrUnusable, Op: "write", Path: string(d), Err: err, Remedy: elsewhere}
	}
	if err := writeFile(d.file(), []byte(text), 0o640); err != nil {
		return err
	}
	return writeFile(d.path(keyName), []byte(key+"\n"), 0o600)
}

// demoDefinition returns the text of the demo's definition. address is that of its service.
func demoDefinition(address string) string {
	return fmt.Sprintf(`# Written by formetl demo. Its service ran only during the demo.
version: 1
name: demo
source:
  base_url: http://%s
  account: acme
  api_key: ${file:%s}
  timezone: UTC
forms: [feedback]
names: label                # columns are named after the form's questions
load:
  - path: "{form}.csv"      # one file, replaced whole
    format: csv
  - path: lake/{form}/      # a dataset: a part for each month
    format: parquet
    partition: month
`, address, keyName)
}

// demoSummary tells a newcomer what was run and written, and which commands to try next. It
// proposes only commands that work as they are printed.
func demoSummary(r *pipelines.Report, took time.Duration, f demoSettings, text string) []byte {
	form := r.Forms[0]
	csv, lake := form.Outputs[0], form.Outputs[1]
	folder := demoFolder(f.dir)
	program, file := callable(), definition.ShellWord(folder.file())
	var b bytes.Buffer
	fmt.Fprintf(&b, `
Done in %s: read %s results, %s; %d requests.

  %s  (%s, one row for each result)
  %s  (Parquet, %d parts by month, %s)
  %s  (the definition of this pipeline:)

`, took.Round(time.Millisecond), plain.Thousands(form.Rows), console.Verified(form), r.Requests.All(),
		folder.path("feedback.csv"), console.Size(csv.Bytes), folder.path("lake/feedback")+string(filepath.Separator), lake.Parts, console.Size(lake.Bytes), folder.file())
	for line := range strings.Lines(text) {
		fmt.Fprintf(&b, "    %s", line)
	}
	fmt.Fprint(&b, "\nTry next:\n")
	if _, err := exec.LookPath("head"); err == nil {
		fmt.Fprintf(&b, "  head -n 3 %s\n", definition.ShellWord(folder.path("feedback.csv")))
	}
	if _, err := exec.LookPath("duckdb"); err == nil && !strings.ContainsAny(f.dir, "'\"") {
		parts := filepath.ToSlash(folder.path("lake/feedback")) + "/**/part-*.parquet"
		fmt.Fprintf(&b, "  duckdb -c \"SELECT dt, count(*) FROM read_parquet('%s', hive_partitioning=true, union_by_name=true) GROUP BY dt ORDER BY dt\"\n", parts)
	}
	fmt.Fprintf(&b, `  %[1]s verify %[2]s   # checks that the files are complete
  %[1]s schema show %[2]s
  %[1]s export --help   # how to export a form of your own account
`, program, file)
	return b.Bytes()
}

// callable returns the command by which a person calls this program again from the folder where it
// was called.
func callable() string {
	const name = "formetl"
	self, err := os.Executable()
	if err != nil {
		return name
	}
	is := func(path string) bool {
		a, failed := os.Stat(self)
		b, err := os.Stat(path)
		return failed == nil && err == nil && os.SameFile(a, b)
	}
	if found, err := exec.LookPath(name); err == nil && is(found) {
		return name
	}
	if strings.Contains(self, "go-build") { // `go run` keeps the program there
		if _, err := os.Stat(filepath.Join("cmd", name, "main.go")); err == nil {
			return "go run ./cmd/" + name
		}
		return "go run github.com/formetl/formetl/cmd/" + name
	}
	if here := "." + string(filepath.Separator) + filepath.Base(self); is(here) {
		return definition.ShellWord(here)
	}
	return definition.ShellWord(self)
}
