package pipelines_test

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/schemas"
)

var update = flag.Bool("update-report", false, "write testdata/report.json anew")

// TestReport compares the report of a run in which everything happens that it
// tells of: schedulers and dashboards read it.
func TestReport(t *testing.T) {
	form := fourDays()
	bad := pipelinestest.Result(20, "2026-01-02 11:00:00", "12")
	bad.Items[0].Values = []string{"not a number"}
	if _, err := form.Insert(bad); err != nil {
		t.Fatal(err)
	}
	for id := range int64(8) { // the others fit
		r, _ := form.Get(id + 1)
		r.Items[0].Values = []string{"1"}
		if r.ID == 3 {
			r.Items[0].Values = []string{"\v"}
		}
		if r.ID > 0 {
			if err := form.Update(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	w := newWorld(t, form)
	w.service.SetFaults("control=ref")
	w.service.Before = once(reads("2026-01-04"), func() { _ = form.Finish(1, extracttest.Wall("2026-01-04 12:00:00")) })
	def := w.daily(
		definition.Output{Path: "{form}.ndjson", Format: "ndjson"},
		definition.Output{Path: "{form}/", Format: "ndjson", Partition: definition.PartitionDay},
		definition.Output{Path: "blocked.csv", Format: "csv"})
	def.File = "definition.yaml"
	def.Forms = []string{"form1", "missing"}
	def.Schema = declared(t, schemas.UnknownIgnore, schemas.OnErrorReject, "int64")
	hold(t, w.dir, "blocked.csv")
	o := options()
	o.RunID, o.Now = "20260301T120000Z-00000000", zoned(t, w, "2026-03-01 06:00:00")
	report, err := pipelines.Run(t.Context(), def, o)
	if err == nil || report.Error != "" || report.ExitCode != 0 {
		t.Errorf("error %v; the command fills in the report's", err)
	}
	got, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	// Other runs have other folders and process ids.
	text := strings.ReplaceAll(string(got), w.dir, "DIR") + "\n"
	const golden = "testdata/report.json"
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("got\n%swant\n%s", text, want)
	}
}

// TestRequestsOfEachForm add up to those of the run and the service's log.
func TestRequestsOfEachForm(t *testing.T) {
	second := fourDays()
	second.Directory = "form2"
	w := newWorld(t, fourDays(), second)
	w.service.SetFaults("busy-first=3")
	def := w.daily(definition.Output{Path: "{form}.csv", Format: "csv"}, definition.Output{Path: "{form}/", Format: "parquet"})
	def.Forms = []string{"form*"}
	report := w.run(def)
	var sum int64
	for _, f := range report.Forms {
		// One for each window, as the count at the end vouches for short pages. One
		// asks what changed, and the results do not say it.
		if f.Requests.Results != 5 || f.Requests.Count != 2 || f.Windows != 4 {
			t.Errorf("%s: %+v, %d windows", f.Form, f.Requests, f.Windows)
		}
		sum += f.Requests.Results + f.Requests.Count + f.Requests.Retries
	}
	outcomes := int64(0)
	for _, n := range report.RequestOutcomes {
		outcomes += n
	}
	if outcomes != int64(len(w.service.Log())) || report.RequestOutcomes["busy"] != 3 {
		t.Errorf("outcomes %v of %d requests", report.RequestOutcomes, len(w.service.Log()))
	}
	all := report.Requests.Results + report.Requests.Count + report.Requests.Retries
	if report.Requests.Retries != 3 || sum+3 != all || all+1 != int64(len(w.service.Log())) { // Get Forms was tried again
		t.Errorf("forms %d, run %+v, service %d", sum, report.Requests, len(w.service.Log()))
	}
	if report.Requests.Other != 1 || report.Requests.All() != outcomes {
		t.Errorf("%+v, and %d attempts", report.Requests, outcomes)
	}
}

// TestRunsThatCannotBegin fail before any request and leave nothing.
func TestRunsThatCannotBegin(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*definition.Definition, *pipelines.Options)
		want   string
	}{
		"no such form":   {func(_ *definition.Definition, o *pipelines.Options) { o.Forms = []string{"other"} }, "names none of the forms that"},
		"empty range":    {func(d *definition.Definition, _ *pipelines.Options) { d.Extract.To = d.Extract.From }, "is empty: `to` must be later"},
		"unknown format": {func(d *definition.Definition, _ *pipelines.Options) { d.Outputs[0].Format = "xls" }, `the format "xls" is not supported`},
		"form in a path": {func(d *definition.Definition, _ *pipelines.Options) {
			d.Forms = []string{"../up"}
			d.Outputs[0].Path += "{form}"
		}, "../up"},
		"state is a file": {func(d *definition.Definition, _ *pipelines.Options) { d.State = "/dev/null" }, "the state in /dev/null cannot be used: "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fourDays())
			def, o := w.daily(definition.Output{Path: "out.csv", Format: "csv"}), options()
			c.change(def, &o)
			_, err := pipelines.Run(t.Context(), def, o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v", err)
			}
			if n := len(w.service.Log()); n != 0 || len(tree(t, w.dir)) != 0 {
				t.Errorf("%d requests, left %v", n, tree(t, w.dir))
			}
		})
	}
}
