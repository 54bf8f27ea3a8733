package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load/loadtest/needs"
)

func TestMedianAndRatios(t *testing.T) {
	for _, c := range []struct {
		list []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(c.list, same); got != c.want {
			t.Errorf("the median of %v is %v, want %v", c.list, got, c.want)
		}
	}
	took := func(cpu ...time.Duration) (rounds []done) {
		for _, c := range cpu {
			rounds = append(rounds, done{usage: usage{cpu: c}})
		}
		return rounds
	}
	if got := ratios(took(2*time.Second, 9*time.Second), took(4*time.Second, 3*time.Second)); got[0] != 0.5 || got[1] != 3 {
		t.Errorf("the ratios are %v", got)
	}
}

// TestSmall runs all that needs no S3 server once, on a form of few results.
func TestSmall(t *testing.T) {
	needs.Long(t) // the released program is built without what is built already
	var out bytes.Buffer
	args := []string{"-results", "300", "-items", "5", "-rounds", "1", "-cases", "csv,ndjson,parquet,by day,xlsx"}
	if err := run(t.Context(), args, &out, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"csv", "by day", "of pages", "300 results of 5 items"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, out.String())
		}
	}
}

func TestUnknownCase(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), []string{"-cases", "csv,tsv", "-formetl", "none"}, &out, &out)
	if err == nil || !strings.Contains(err.Error(), `there is no case "tsv": choose from csv,`) {
		t.Errorf("err = %v", err)
	}
}
