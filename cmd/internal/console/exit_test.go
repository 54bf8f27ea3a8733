package console

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/pipelines/upkeep"
	"github.com/formetl/formetl/schemas/ddl"
	"github.com/formetl/formetl/transform"
)

func service(code, status int) error { return &transport.ServiceError{Code: code, Status: status} }

// unreadable is the error of an answer that cannot be read.
func unreadable(fault transport.Fault) error { return &transport.AnswerError{Fault: fault} }

// failedChecks is the error of a checklist of which these failed.
func failedChecks(faults ...error) error {
	var l upkeep.Checklist
	for _, err := range faults {
		l.Checks = append(l.Checks, upkeep.Check{State: upkeep.Failed, Err: err})
	}
	return l.Err()
}

func TestExitCode(t *testing.T) {
	disk := &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	for _, c := range []struct {
		want int
		err  error
	}{
		{ExitOK, nil},
		{ExitUsage, &CodeError{ExitUsage, errors.New("x")}},
		{ExitUsage, fmt.Errorf("/lake/: %w", &load.Error{Kind: load.ErrUsage})},
		{ExitUsage, &CodeError{ExitUsage, &definition.Error{}}}, // the outermost class decides
		{ExitData, &transport.AnswerError{}},
		{ExitData, fmt.Errorf("x: %w", &extract.BreachError{})},
		{ExitTemporary, unreadable(transport.FaultEmpty)},
		{ExitTemporary, unreadable(transport.FaultGarbled)},
		{ExitTemporary, unreadable(transport.FaultCut)},
		{ExitData, unreadable(transport.FaultWrong)},
		{ExitTemporary, unreadable(transport.FaultForeign)}, // not the service's: TestDamagedAnswers tells when the address is wrong
		{ExitTemporary, &transport.OutageError{Last: unreadable(transport.FaultForeign)}},
		{ExitConfig, &transport.RequestError{Err: &transport.AnswerError{WebPages: 3}}},
		{ExitUnavailable, &transport.Error{Code: ExitUnavailable, Err: &transport.NetworkError{}}},
		{ExitData, &reading.RejectsError{}},
		{ExitCantCreate, &definition.Fault{Code: ExitCantCreate}},
		{ExitData, &load.Error{Kind: load.ErrData}},
		{ExitData, &reconcile.VerifyError{}},
		{ExitData, &transform.ValueError{}},
		{ExitData, &transform.UnknownFieldError{}},
		{ExitData, &ddl.UnfitError{}},
		{ExitData, &extract.FeedError{}},
		{ExitData, &transform.ColumnsError{}},
		{ExitData, &transport.RequestError{Err: &transport.AnswerError{}}},
		{ExitData, &output.OutputsError{Errors: []error{&load.HeldError{}, fmt.Errorf("out.xlsx: %w", &load.Error{Kind: load.ErrData})}}},
		{ExitUnavailable, &transport.Error{Code: ExitUnavailable, Err: &transport.AnswerError{}}}, // what it wraps does not count
		{ExitData, &extract.BreachError{}},
		{ExitNoInput, service(transport.CodeInvalidUser, 0)},
		{ExitNoInput, service(transport.CodeInvalidForm, 0)},
		{ExitData, &CodeError{ExitData, errors.New("x")}},
		{ExitUnavailable, service(transport.CodeUnexpected, 500)},
		{ExitUnavailable, service(transport.CodeInvalidValue, 0)},
		{ExitUnavailable, service(transport.CodeInvalidID, 0)},
		{ExitUnavailable, service(4711, 200)},
		{ExitUnavailable, &transport.StatusError{Status: 403}},
		{ExitUnavailable, &transport.NetworkError{Final: true}},
		{ExitBug, errors.New("nobody knows")},
		{ExitBug, fmt.Errorf("wrapped: %w", errors.New("nobody knows"))},
		{ExitCantCreate, &load.Error{Kind: load.ErrUnusable, Err: errors.New("x")}},
		{ExitCantCreate, &load.ManifestError{}},
		{ExitCantCreate, &checkpoint.StateError{Err: &load.Error{Kind: load.ErrUnusable, Err: fs.ErrPermission}}},
		{ExitCantCreate, &checkpoint.StateError{Err: &fs.PathError{Err: syscall.ENOTDIR}}},
		{ExitCantCreate, &os.LinkError{Err: syscall.EROFS}},
		{ExitIO, &checkpoint.StateError{Err: &load.Error{Kind: load.ErrFailed, Err: disk}}},
		{ExitIO, &load.Error{Kind: load.ErrFailed, Err: disk}},
		{ExitIO, &output.StdoutError{Err: syscall.EPIPE}},
		{ExitIO, disk},
		{ExitTemporary, service(transport.CodeBusy, 200)},
		{ExitTemporary, service(transport.CodeUnexpected, 429)},
		{ExitTemporary, &transport.StatusError{Status: 502}},
		{ExitTemporary, &transport.NetworkError{}},
		{ExitTemporary, &transport.BudgetError{}},
		{ExitTemporary, &transport.RequestError{Err: &transport.OutageError{Last: &transport.StatusError{Status: 502}}}},
		{ExitTemporary, &transport.OutageError{Last: errors.New("nobody knows")}},
		{ExitTemporary, &transport.RequestError{Err: &transport.OutageError{Last: &transport.AnswerError{}}}},
		{ExitTemporary, &load.HeldError{}},
		{ExitTemporary, fmt.Errorf("x: %w", load.ErrConflict)},
		{ExitTemporary, fmt.Errorf("x: %w", load.ErrStagedGone)},
		{ExitNoPermission, &transport.RequestError{Err: service(transport.CodeInvalidKey, 401)}},
		{ExitConfig, &definition.Error{Err: fs.ErrNotExist}}, // a missing definition too
		{ExitConfig, &reading.RangeError{}},
		{ExitConfig, definition.Unsupported("x", "y")},
		{ExitConfig, &load.Error{Kind: load.ErrConfig}},
		{ExitConfig, &transport.Error{Code: ExitConfig}},
		{ExitConfig, service(transport.CodeInvalidURL, 404)},
		{ExitData, &definition.Fault{Code: ExitData}},
		{ExitNoPermission, failedChecks(&load.HeldError{}, &definition.Fault{Code: ExitIO}, service(transport.CodeInvalidKey, 401))},
		{ExitTemporary, failedChecks(&load.HeldError{}, &transport.BudgetError{})},
		{ExitHungUp, &StopError{syscall.SIGHUP}},
		{ExitInterrupted, &StopError{syscall.SIGINT}},
		{ExitInterrupted, fmt.Errorf("x: %w", context.Canceled)},
		{ExitTerminated, fmt.Errorf("x: %w", &StopError{syscall.SIGTERM})},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%T %v: %d, want %d", c.err, c.err, got, c.want)
		}
		// A run keeps what it read by the same rule.
		if got := pipelines.DataAtFault(c.err); got != (c.want == ExitData) {
			t.Errorf("%T %v: the data are at fault: %t, and the exit code is %d", c.err, c.err, got, c.want)
		}
	}
}

// TestExitCodeOfSeveral holds contract.md's order: 75 only if all are
// temporary, else the first of 70 78 77 66 65 73 74 69.
func TestExitCodeOfSeveral(t *testing.T) {
	one := map[int]error{
		ExitBug: errors.New("x"), ExitConfig: &definition.Fault{Code: ExitConfig}, ExitNoPermission: service(transport.CodeInvalidKey, 401),
		ExitNoInput: service(transport.CodeInvalidForm, 404), ExitData: &reconcile.VerifyError{},
		ExitCantCreate: &load.Error{Kind: load.ErrUnusable, Err: errors.New("x")}, ExitIO: &load.Error{Kind: load.ErrFailed, Err: errors.New("x")},
		ExitUnavailable: service(transport.CodeUnexpected, 500), ExitTemporary: service(transport.CodeBusy, 503),
	}
	order := []int{ExitBug, ExitConfig, ExitNoPermission, ExitNoInput, ExitData, ExitCantCreate, ExitIO, ExitUnavailable, ExitTemporary}
	for i, first := range order {
		for _, second := range order[i:] {
			errs := []error{fmt.Errorf("form a: %w", one[second]), nil, fmt.Errorf("form b: %w", one[first])}
			for _, err := range []error{
				errors.Join(errs...),
				&pipelines.FormsError{Errors: []error{errs[0], errs[2]}},
				&output.OutputsError{Errors: []error{errs[0], errs[2]}},
				fmt.Errorf("x: %w", &pipelines.FormsError{Errors: []error{&output.OutputsError{Errors: []error{errs[2]}}, errs[0]}}),
			} {
				if got := ExitCode(err); got != first {
					t.Errorf("%d and %d give %d", second, first, got)
				}
			}
		}
	}
	refused := &transport.RequestError{Err: service(transport.CodeInvalidKey, 401)}
	notRun := &pipelines.FormsError{Forms: 3, Errors: []error{
		fmt.Errorf("form a: %w", &load.HeldError{}), fmt.Errorf("form b: %w", refused),
		fmt.Errorf("form c: %w", &pipelines.NotRunError{Form: "c", Err: refused}),
	}}
	if got := ExitCode(notRun); got != ExitNoPermission {
		t.Errorf("forms that were not run give %d", got)
	}
	stopped := errors.Join(&load.Error{Kind: load.ErrData}, &StopError{syscall.SIGTERM})
	if got := ExitCode(stopped); got != ExitTerminated || !pipelines.DataAtFault(stopped) {
		t.Errorf("a stop beside data at fault is %d, and the data are at fault: %t", got, pipelines.DataAtFault(stopped))
	}
}

// TestJudge holds that a command which was told to stop counts as stopped,
// whatever it came to, and that an error before a command's own work is wrong
// usage, unless it has a class.
func TestJudge(t *testing.T) {
	stopped, cancel := context.WithCancelCause(t.Context())
	cancel(&StopError{syscall.SIGTERM})
	for _, c := range []struct {
		name  string
		ctx   context.Context
		began bool
		err   error
		want  int
	}{
		{"a wrong flag", t.Context(), false, errors.New("x"), ExitUsage},
		{"a wrong schema among the flags", t.Context(), false, &definition.Error{}, ExitConfig},
		{"a bug", t.Context(), true, errors.New("x"), ExitBug},
		{"broken off", stopped, true, errors.New("half a file"), ExitTerminated},
		{"broken off by the context", stopped, true, context.Canceled, ExitTerminated},
		{"failed, and told to stop before it ended", stopped, true, service(transport.CodeInvalidKey, 401), ExitTerminated},
		{"told to stop in an answer of a store", stopped, true, &load.Error{Kind: load.ErrFailed, Err: context.Canceled}, ExitTerminated},
		{"told to stop before its flags were read", stopped, false, nil, ExitTerminated},
		{"told to stop, and wrong flags", stopped, false, errors.New("x"), ExitTerminated},
		{"told to stop while tidying up", stopped, true, nil, ExitTerminated},
		{"left to finish", t.Context(), true, nil, ExitOK},
		{"a service that was told to stop", stopped, true, &ServedError{}, ExitOK},
	} {
		if got := ExitCode(judge(c.ctx, c.err, c.began)); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestHint(t *testing.T) {
	for _, c := range []struct {
		err           error
		command, kept string
		want          string
	}{
		{service(transport.CodeInvalidKey, 401), "run", "", "copy the API key from the form's API page again; for API v2 it is the account's token"},
		{service(transport.CodeInvalidUser, 404), "run", "", "check the account: it comes after the host in the address of a form, https://HOST/ACCOUNT/FORM"},
		{service(transport.CodeInvalidForm, 404), "run", "", "check the form's name; `formetl forms` lists the forms of the account"},
		{service(transport.CodeBusy, 503), "run", "", "run the same command again later"},
		{&transport.OutageError{Last: &transport.NetworkError{}}, "run", "", "run the same command again later"},
		{
			&transport.RequestError{Err: &transport.BudgetError{Until: time.Date(2026, 2, 3, 4, 5, 6, 1, time.FixedZone("", 3600))}},
			"export", "no result is kept", "run the same command again after 2026-02-03T04:05:07+01:00 (no result is kept)",
		},
		{&transport.BudgetError{Per: 24 * time.Hour}, "run", "", "run the same command again after 0001-01-01T00:00:00Z, or raise source.requests.per_day in the definition, if the service allows it"},
		{service(transport.CodeBusy, 503), "run", "the next run continues after 7 results already read", "run the same command again later (the next run continues after 7 results already read)"},
		{&StopError{syscall.SIGINT}, "run", "", "run the same command again"},
		{&StopError{syscall.SIGINT}, "export", "no result is kept", "run the same command again (no result is kept)"},
		{&StopError{syscall.SIGTERM}, "copy", "", "check with `formetl forms` whether the copy exists, before you run the same command again"},
		{&transport.Error{Code: ExitUsage, Remedy: "look"}, "copy", "", "look"},
		{&transport.Error{Code: ExitUsage}, "copy", "", "see formetl copy --help"},
		{&transport.NetworkError{}, "forms", "", "run the same command again later"},
		{&transport.NetworkError{}, "copy", "", "check with `formetl forms` whether the copy exists, before you run the same command again later"},
		{&load.HeldError{}, "run", "", "wait until that run has ended, or stop it; then run the same command again"},
		{&CodeError{ExitUsage, errors.New("x")}, "run", "", "see formetl run --help"},
		{errors.New("x"), "run", "", "this is a bug in formetl; " + ReportBug},
		{&definition.Error{File: "p.yaml"}, "run", "", "fix this, then check it with `formetl validate p.yaml`"},
		{&definition.Error{}, "validate", "", ""},
		{&definition.Fault{Code: ExitConfig, Cure: "restore it"}, "run", "", "restore it"},
		{&reconcile.VerifyError{}, "run", "no result is kept", "try again later; or go on without this check, though results may be missing, with --no-verify (export) or verify: false in the definition; if it stays so, only those who run the service can mend it: send them this message and the table that `formetl doctor DEFINITION` prints, which contains no answers (`formetl init` writes a definition)"},
		{&transport.ServiceError{Code: transport.CodeInvalidValue, Status: 400, Asked: "view 77"}, "export", "", "the likely cause is what was asked for: view 77; give another, or leave it out"},
		{&transport.RequestError{Err: service(transport.CodeInvalidValue, 400)}, "export", "", "the service does not take what formetl sent; try the other API (api: v1 or v2 in the definition, --api in a command without one), or send this message to those who run the service"},
		{&transport.AnswerError{WebPages: 3}, "run", "", "set base_url (--base-url, FORMETL_BASE_URL) to the service's own address, such as https://fs1.example.com; if it was right before, this may be a login or maintenance page: open the address in a browser, and run again"},
		{unreadable(transport.FaultGarbled), "run", "", "run the same command again later"},
		{unreadable(transport.FaultWrong), "run", "", "check that base_url is the service's own address; if it is, send this message to those who run the service, or try the other API (api: v1 or v2 in the definition, --api in a command without one)"},
		{&definition.Fault{Code: ExitData}, "run", "", "correct what the message names, in the schema or at the service; then run the same command again"},
		{&definition.Fault{Code: ExitNoInput}, "run", "", "check the names of the account and the form; `formetl forms` lists the forms"},
		{&load.Error{Kind: load.ErrUnusable, Err: errors.New("x")}, "run", "", "fix the path that the message names, or choose another; then run the same command again"},
		{&load.Error{Kind: load.ErrUnusable, Remedy: "look", Err: errors.New("x")}, "run", "", "look"},
		{&load.Error{Kind: load.ErrFailed, Err: errors.New("x")}, "run", "the next run continues after 7 results already read", "check the disk or the storage that the message names; then run the same command again (the next run continues after 7 results already read)"},
		{service(transport.CodeUnexpected, 500), "run", "", "check in a browser whether the service works; then run the same command again"},
		{&transport.Error{Code: ExitUnavailable, Remedy: "look", Err: &transport.NetworkError{}}, "copy", "", "look"},
		{failedChecks(service(transport.CodeInvalidKey, 401)), "doctor", "", "do what is written under each failed check; then run the same command again"},
	} {
		if got := Hint(c.err, "formetl "+c.command, c.kept); got != c.want {
			t.Errorf("%T: %q, want %q", c.err, got, c.want)
		}
	}
}

func TestStopErrorNamesTheSignal(t *testing.T) {
	for signal, want := range map[os.Signal]string{os.Interrupt: "stopped by SIGINT (Ctrl-C)", syscall.SIGTERM: "stopped by SIGTERM", syscall.SIGHUP: "stopped by SIGHUP (the terminal was closed)"} {
		if got := (&StopError{signal}).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
