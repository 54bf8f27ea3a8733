package pipelines

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reconcile"
)

// TestCollisions finds names that lead to one place, or into another form's
// dataset, and no others.
func TestCollisions(t *testing.T) {
	for _, c := range []struct {
		name  string
		paths []string
		forms []string
		fold  bool
		want  []string
	}{
		{name: "none", paths: []string{"out/{form}.csv", "lake/{form}/"}, forms: []string{"a", "b", "A"}},
		{name: "one name", paths: []string{"out/{form}.csv", "out/x{form}.csv"}, forms: []string{"a", "b", "xa"}, want: []string{"a", "xa"}},
		{name: "two outputs of one form", paths: []string{"out/{form}-{account}/", "out/{form}-acme/"}, forms: []string{"a"}, want: []string{"a"}},
		{name: "a companion", paths: []string{"out/{form}.csv", "out/{form}.json"}, forms: []string{"a", "a.csv.manifest", "b"}, want: []string{"a", "a.csv.manifest"}},
		{name: "a codebook", paths: []string{"out/{form}.csv"}, forms: []string{"a", "a.codebook", "b"}, want: []string{"a", "a.codebook"}},
		{name: "one codebook of two outputs", paths: []string{"out/{form}.csv", "out/{form}.ndjson.gz", "out/{form}/"}, forms: []string{"a", "a.b", "b"}},
		{name: "in a dataset", paths: []string{"lake/{form}/", "lake/other/{form}.csv"}, forms: []string{"a", "other", "b"}, want: []string{"a", "b", "other"}},
		{name: "beside a dataset", paths: []string{"lake/{form}/", "lake/{form}.csv"}, forms: []string{"a", "ab"}},
		{name: "case", paths: []string{"out/{form}.csv"}, forms: []string{"a", "b", "A"}, fold: true, want: []string{"A", "a"}},
		{name: "case in a bucket", paths: []string{"s3://bucket/{form}.csv"}, forms: []string{"a", "A"}, fold: true},
		{name: "bucket", paths: []string{"s3://bucket/{form}/", "s3://bucket/x{form}/"}, forms: []string{"a", "xa"}, want: []string{"a", "xa"}},
		{name: "no name for a path", paths: []string{"out/{form}.csv", "out/x{form}.csv"}, forms: []string{"a/b", "..", "c"}},
		{name: "without {form}", paths: []string{"-"}, forms: []string{"a", "b"}}, // checkOutputs refuses it
	} {
		t.Run(c.name, func(t *testing.T) {
			def := &definition.Definition{Name: "p", Source: definition.Source{Account: "acme"}}
			for _, p := range c.paths {
				def.Outputs = append(def.Outputs, definition.Output{Path: p})
			}
			clash := collisions(def, c.forms, textFormats(), "run", c.fold)
			for form, err := range clash {
				if !strings.Contains(err.Error(), definition.Quote(form)) || !strings.Contains(err.Error(), "exclude one of the forms") {
					t.Errorf("%s: %v", form, err)
				}
			}
			if got := slices.Sorted(maps.Keys(clash)); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestHopeless tells what every form would meet from what one form met.
func TestHopeless(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&transport.ServiceError{Code: transport.CodeInvalidKey}, true},
		{&transport.ServiceError{Code: transport.CodeInvalidUser}, true},
		{&transport.NetworkError{Final: true}, true},
		{&transport.OutageError{Last: errors.New("x")}, true},
		{&output.OutputsError{Errors: []error{errors.New("x"), &transport.ServiceError{Code: transport.CodeInvalidKey}}}, true},
		{&transport.ServiceError{Code: transport.CodeInvalidForm}, false},
		{&transport.ServiceError{Code: transport.CodeInvalidURL}, false}, // a form's name may make it one
		{&transport.ServiceError{Code: transport.CodeUnexpected}, false},
		{&transport.ServiceError{Code: transport.CodeBusy}, false},
		{&transport.NetworkError{}, false},
		{&transport.BudgetError{}, false},
		{&reconcile.VerifyError{}, false},
		{errors.New("x"), false},
	} {
		if got := hopeless(fmt.Errorf("window x: %w", c.err)); got != c.want {
			t.Errorf("%T %v: %v", c.err, c.err, got)
		}
	}
}

func textFormats() []load.Format {
	return []load.Format{{Name: "csv", Extension: ".csv", Text: true}, {Name: "ndjson", Extension: ".ndjson", Text: true}, {Name: "json", Extension: ".json", Text: true}, {Name: "parquet", Extension: ".parquet"}}
}
