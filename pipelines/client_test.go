package pipelines_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// serve serves empty forms, and gives the service and the source that reaches it.
func serve(t *testing.T, names ...string) (*formservice.Server, definition.Source) {
	forms := make([]*formservice.Form, 0, len(names))
	for _, name := range names {
		forms = append(forms, formservice.NewForm(name, nil, nil))
	}
	return pipelinestest.Serve(t, forms...)
}

func TestListForms(t *testing.T) {
	service, source := serve(t, "form1", "form2", "other")
	for _, c := range []struct {
		forms, exclude, chosen, want []string
		asked                        int
	}{
		{[]string{"form1"}, nil, nil, []string{"form1"}, 0},
		{[]string{"form*"}, []string{"form2"}, nil, []string{"form1"}, 1},
		{[]string{"*"}, nil, []string{"other"}, []string{"other"}, 0},
		{[]string{"*"}, nil, nil, []string{"form1", "form2", "other"}, 1},
		{[]string{"form1"}, nil, []string{"form2"}, nil, 0},
		{[]string{"x*"}, nil, nil, nil, 1},
	} {
		service.Reset()
		def := &definition.Definition{Forms: c.forms, Exclude: c.exclude, Source: source}
		got, err := pipelines.ListForms(t.Context(), def, pipelines.Options{Forms: c.chosen})
		_, none := errors.AsType[*definition.Fault](err)
		if !slices.Equal(got, c.want) || (c.want == nil) != none || len(service.Log()) != c.asked {
			t.Errorf("%v but %v of %v: %v, %v after %d requests", c.forms, c.exclude, c.chosen, got, err, len(service.Log()))
		}
	}
}

// TestIdlePatterns holds that a pattern which matches no form is told of, as it is most
// likely misspelt.
func TestIdlePatterns(t *testing.T) {
	_, source := serve(t, "form1", "other")
	var log strings.Builder
	def := &definition.Definition{Forms: []string{"form*", "from*", "not-listed"}, Exclude: []string{"othr", "other"}, Source: source}
	o := pipelines.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	if _, err := pipelines.ListForms(t.Context(), def, o); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "level=WARN") || !strings.HasSuffix(lines[0], "form=from*") || !strings.HasSuffix(lines[1], "form=othr") {
		t.Errorf("%q", lines)
	}
}

// TestWaitsAreLogged holds that the log and the watcher learn that requests wait for the
// budget, once for each wait.
func TestWaitsAreLogged(t *testing.T) {
	_, source := serve(t, "form1")
	source.Requests.PerMinute = 1
	var log strings.Builder
	ctx, stop := context.WithCancel(t.Context())
	until := time.Time{}
	o := pipelines.Options{
		BuiltIn: pipelinestest.Options().BuiltIn,
		Logger:  slog.New(slog.NewTextHandler(&log, nil)),
		Client:  pipelines.ClientOptions{Waits: func(to time.Time) { until = to; stop() }},
	}
	c, err := pipelines.NewClient(t.Context(), &definition.Definition{Source: source, State: t.TempDir()}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 { // the second one waits, and is stopped
		_, err = c.Forms(ctx)
	}
	if !errors.Is(err, context.Canceled) || time.Until(until) < 30*time.Second {
		t.Errorf("%v, until %s", err, until)
	}
	if n := strings.Count(log.String(), `msg="waiting for the budget of 1 request per minute" until=`); n != 1 {
		t.Errorf("%d lines: %s", n, log.String())
	}
}

func TestNewClient(t *testing.T) {
	if _, err := pipelines.NewClient(t.Context(), &definition.Definition{Source: definition.Source{BaseURL: "https://x.invalid", Account: "a", Key: transport.NewSecret("k")}}, pipelines.Options{}); err == nil {
		t.Error("a source without a zone made a client")
	}
	_, source := serve(t, "form1")
	c, err := pipelines.NewClient(t.Context(), &definition.Definition{Source: source}, pipelines.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if forms, err := c.Forms(t.Context()); err != nil || len(forms) != 1 {
		t.Errorf("%v, %v", forms, err)
	}
}

// TestFormsErrorTellsTheForms that failed one by one, and those that were not
// run in few words.
func TestFormsErrorTellsTheForms(t *testing.T) {
	refused := errors.New("the key was refused")
	failed := fmt.Errorf("form f0: %w", refused)
	notRun := func(n int) []error {
		errs := append(make([]error, 0, n+1), failed)
		for i := range n {
			errs = append(errs, fmt.Errorf("form f%d: %w", i+1, &pipelines.NotRunError{Form: fmt.Sprintf("f%d", i+1), Err: refused}))
		}
		return errs
	}
	for _, c := range []struct {
		err  *pipelines.FormsError
		want string
	}{
		{&pipelines.FormsError{Forms: 1, Errors: []error{failed}}, "form f0: the key was refused"},
		{&pipelines.FormsError{Forms: 3, Errors: []error{failed}}, "1 of 3 forms failed:\nform f0: the key was refused"},
		{&pipelines.FormsError{Forms: 3, Errors: notRun(2)}, "1 of 3 forms failed; 2 other forms not started for the same reason (f1, f2):\nform f0: the key was refused"},
		{&pipelines.FormsError{Forms: 500, Errors: notRun(499)}, "1 of 500 forms failed; 499 other forms not started for the same reason (f1, f2, f3, f4, f5 and 494 more):\nform f0: the key was refused"},
		{&pipelines.FormsError{Forms: 2, Errors: []error{fmt.Errorf("a: %w", &pipelines.FormsError{Forms: 2, Errors: notRun(1)})}}, "1 of 2 forms failed:\na: 1 of 2 forms failed; 1 other form not started for the same reason (f1):\nform f0: the key was refused"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
	}
}

// TestEachEndsWithTheCause of a context that is done, also in the last form, and
// gathers the errors of the others.
func TestEachEndsWithTheCause(t *testing.T) {
	refused, stop := errors.New("refused"), errors.New("stopped")
	var failed pipelines.FormsError
	err := failed.Each(t.Context(), &definition.Definition{}, []string{"a", "b"}, func(_ *definition.Definition, form string) error {
		if form == "a" {
			return refused
		}
		return nil
	})
	if err != nil || !errors.Is(failed.OrNil(), refused) || failed.OrNil().Error() != "1 of 2 forms failed:\nform a: refused" {
		t.Errorf("%v, %v", err, failed.OrNil())
	}
	for _, at := range []string{"a", "b"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var failed pipelines.FormsError
		done := 0
		err := failed.Each(ctx, &definition.Definition{}, []string{"a", "b"}, func(_ *definition.Definition, form string) error {
			if done++; form == at {
				cancel(stop)
				return ctx.Err()
			}
			return nil
		})
		if want := map[string]int{"a": 1, "b": 2}[at]; !errors.Is(err, stop) || failed.OrNil() != nil || done != want {
			t.Errorf("stopped in %s: %v, %v after %d forms", at, err, failed.OrNil(), done)
		}
	}
}
