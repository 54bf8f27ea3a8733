package reportpage

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/telemetry"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/schemas"
)

// secretWord is in every personal value of the tests.
const secretWord = "Qw8Personal5Canary"

// personalForm has so many items. Values of the first five are personal. One in fifty has
// several of them in the first item, and one in fifty has no number in the sixth. Results come an hour apart from the year's beginning on.
func personalForm(items, results int) *formservice.Form {
	list := make([]formservice.Item, items)
	for i := range list {
		list[i] = formservice.Item{ID: strconv.Itoa(i + 1), Type: "radio", Index: i + 1, Label: fmt.Sprintf("Question %d about the services & what else there was?", i+1)}
	}
	sent := strings.ToValidUTF8(strings.NewReplacer("\v", "", "\x00", "").Replace(hostile), "")
	list[9].Label = sent
	made := make([]formservice.Result, results)
	for n := range made {
		r := formservice.Result{ID: int64(1000 + n), Metas: []formservice.Meta{
			{ID: "result_status", Value: "Complete"},
			{ID: "date_finish", Value: day(0).Add(time.Duration(n*365*24/results) * time.Hour).Format(formservice.WallTime)},
			{ID: "user_ip", Value: secretWord + "-ip"},
		}}
		for i, item := range list {
			value := fmt.Sprintf("choice %d of %d", (n+i)%4, i)
			switch {
			case i < 5:
				value = fmt.Sprintf("%s-%d-%d", secretWord, i, n%3)
			case i == 5:
				value = strconv.Itoa(n)
				if n%50 == 7 {
					value = "no number"
				}
			case i == 9:
				value = sent
			case (n+i)%9 == 0:
				continue
			}
			answer := formservice.Answer{ID: item.ID, Values: []string{value}}
			if i == 0 && n%50 == 11 {
				answer.Values = append(answer.Values, value+" too")
			}
			r.Items = append(r.Items, answer)
		}
		made[n] = r
	}
	return formservice.NewForm("form1", list, made)
}

// personalSchema has a rule of each kind, and one column that rejects personal values.
func personalSchema(t *testing.T) *schemas.Schema {
	t.Helper()
	key, err := schemas.NewHMACKey([]byte("a key of the tests, which is long enough"))
	if err != nil {
		t.Fatal(err)
	}
	column := func(name string, from schemas.Source, kind schemas.TypeKind, rule schemas.PII) schemas.Column {
		return schemas.Column{Name: name, From: from, Type: schemas.Type{Kind: kind}, PII: rule}
	}
	item := func(n int) schemas.Source { return schemas.Source{Kind: schemas.FromItem, ID: strconv.Itoa(n)} }
	return &schemas.Schema{Name: "personal", MaxRejects: 1000, HMACKey: key, Columns: []schemas.Column{
		column("id", schemas.Source{Kind: schemas.FromResultID}, schemas.Int64, schemas.PII{}),
		column("status", schemas.Source{Kind: schemas.FromMeta, ID: "result_status"}, schemas.String, schemas.PII{}),
		column("ip", schemas.Source{Kind: schemas.FromMeta, ID: "user_ip"}, schemas.String, schemas.PII{Kind: schemas.PIIDrop}),
		column("mail", item(1), schemas.String, schemas.PII{Kind: schemas.PIIHMAC}),
		column("phone", item(2), schemas.String, schemas.PII{Kind: schemas.PIIRedact}),
		column("name", item(3), schemas.String, schemas.PII{Kind: schemas.PIITruncate, Keep: 3}),
		column("gone", item(4), schemas.String, schemas.PII{Kind: schemas.PIIDrop}),
		column("tags", item(5), schemas.String, schemas.PII{Kind: schemas.PIIHMAC}),
		column("number", item(6), schemas.Int64, schemas.PII{}),
	}}
}

// runPage runs a definition as the command does, and returns its page.
func runPage(t *testing.T, def *definition.Definition) (*pipelines.Report, []byte, error) {
	t.Helper()
	o := pipelines.Options{Options: pipelinestest.Options()}
	report, err := pipelines.Run(t.Context(), def, o)
	telemetry.SetExitCodes(report, err)
	file := filepath.Join(t.TempDir(), "run.HTML")
	if err := telemetry.WriteReports(file, []*pipelines.Report{report}, Page); err != nil {
		t.Fatal(err)
	}
	page, readErr := os.ReadFile(file)
	if readErr != nil {
		t.Fatal(readErr)
	}
	return report, page, err
}

// yearRun is a run of a year of daily windows with 200 columns and personal data.
func yearRun(t *testing.T) (*pipelines.Report, []byte) {
	t.Helper()
	_, source := pipelinestest.Serve(t, personalForm(200, 2000))
	def := pipelinestest.Definition(t.TempDir(), source, definition.Output{Path: "{form}.csv", Format: "csv"}, definition.Output{Path: "lake/{form}/", Format: "ndjson", Partition: "month"})
	def.Extract.From, def.Extract.To, def.Extract.Window = day(0), day(365), extract.Step{Days: 1}
	def.Schema = personalSchema(t)
	report, page, err := runPage(t, def)
	if err != nil {
		t.Fatal(err)
	}
	return report, page
}

// TestPageOfARealYear runs a year of daily windows and 200 columns against a real service.
// Its page is small, sound, and holds neither personal data nor the key.
func TestPageOfARealYear(t *testing.T) {
	report, page := yearRun(t)
	f := report.Forms[0]
	if f.Windows != 365 || f.Rejected != 80 || f.Rows != 1920 || len(f.Spans) > 60 {
		t.Fatalf("%d windows, %d rejected, %d rows, %d spans", f.Windows, f.Rejected, f.Rows, len(f.Spans))
	}
	t.Logf("%d bytes", len(page))
	if len(page) >= 1_000_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
	checkPage(t, "year", page)
	checkPersonal(t, page)
	for _, word := range []string{"its result was rejected", "1,920", "2,000 results of 365 windows, 80 rejected"} {
		if !strings.Contains(text(t, page), word) {
			t.Errorf("the page does not say %q", word)
		}
	}
	t.Run("chromium", func(t *testing.T) { browse(t, "realyear", page) })
}

// checkPersonal looks for personal values, for what the rules leave of them, and for the key.
func checkPersonal(t *testing.T, page []byte) {
	t.Helper()
	never := make([]string, 0, 20)
	never = append(never, secretWord, strings.ToLower(secretWord), secretWord[:4], schemas.Redacted, pipelinestest.Key)
	hash, err := personalSchema(t).HMACKey.Hash()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		for n := range 3 {
			hash.Reset()
			fmt.Fprintf(hash, "%s-%d-%d", secretWord, i, n)
			never = append(never, hex.EncodeToString(hash.Sum(nil)))
		}
	}
	for _, word := range never {
		if bytes.Contains(page, []byte(word)) {
			t.Errorf("the page holds %q", word)
		}
	}
}

// TestPersonalValuesOfFailures: neither does the page of a run that personal values end.
func TestPersonalValuesOfFailures(t *testing.T) {
	for name, edit := range map[string]func(*schemas.Schema){
		"too many rejects": func(s *schemas.Schema) { s.MaxRejects = 0 },
		"on_error: fail":   func(s *schemas.Schema) { s.Columns[3].OnError = schemas.OnErrorFail },
		"made null":        func(s *schemas.Schema) { s.Columns[3].OnError = schemas.OnErrorSetNull },
		"unknown: fail":    func(s *schemas.Schema) { s.Unknown = schemas.UnknownFail },
	} {
		t.Run(name, func(t *testing.T) {
			_, source := pipelinestest.Serve(t, personalForm(12, 60))
			def := pipelinestest.Definition(t.TempDir(), source, definition.Output{Path: "{form}.csv", Format: "csv"})
			def.Extract.From, def.Extract.To = day(0), day(365)
			def.Schema = personalSchema(t)
			edit(def.Schema)
			_, page, err := runPage(t, def)
			if (err == nil) != (name == "made null") {
				t.Fatal(err)
			}
			checkPage(t, name, page)
			checkPersonal(t, page)
			if err != nil && !strings.Contains(text(t, page), "data at fault") {
				t.Error("the page does not say how the run ended")
			}
		})
	}
}

// TestPageOfRefusedKey: the page of a run whose key is refused says so, and not the key.
func TestPageOfRefusedKey(t *testing.T) {
	service, source := pipelinestest.Serve(t, personalForm(12, 60))
	service.Key = "another key"
	def := pipelinestest.Definition(t.TempDir(), source, definition.Output{Path: "{form}.csv", Format: "csv"})
	report, page, err := runPage(t, def)
	if err == nil || errors.Is(err, t.Context().Err()) || report.ExitCode != 77 {
		t.Fatalf("%d, %v", report.ExitCode, err)
	}
	checkPage(t, "refused", page)
	checkPersonal(t, page)
	if said := text(t, page); !strings.Contains(said, "key refused") || !strings.Contains(said, "What to do") {
		t.Error("the page does not say what happened")
	}
}
