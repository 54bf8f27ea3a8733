package pipelines_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/formetl/formetl/pipelines"
)

// TestReportOfAFailedOutput says what the output still holds, as an earlier run left it.
func TestReportOfAFailedOutput(t *testing.T) {
	w := newWorld(t, fourDays())
	def := w.daily(fileAndDays()...)
	first := w.run(def)
	o := watching(func(root, op, _ string) error {
		if filepath.Clean(root) == w.path("days") && op == "stage" {
			return errDisk
		}
		return nil
	})
	o.Full = true
	report, err := pipelines.Run(t.Context(), def, o)
	if !errors.Is(err, errDisk) {
		t.Fatalf("got %v", err)
	}
	held := map[string]int64{}
	for i, out := range report.Forms[0].Outputs {
		before := first.Forms[0].Outputs[i]
		if out.Rows != before.Rows || out.Parts != before.Parts || out.Bytes != before.Bytes || out.Watermark != before.Watermark || out.Rows == 0 {
			t.Errorf("%s: %+v, and before %+v", out.Path, out, before)
		}
		held[out.Error] = out.Rows
	}
	if len(held) != 2 {
		t.Errorf("not one of two outputs failed: %v", held)
	}
}
