package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// bench is one benchmark: the processes that it runs against, and its folder.
type bench struct {
	settings
	dir     string
	service *service
	s3      *needs.S3 // nil without the case s3
}

// done is what one run of a case took.
type done struct {
	usage
	results, counts int64 // requests
}

// cases are the names of all cases in the order of the table.
func cases() []string {
	return []string{"csv", "ndjson", "parquet", "by day", "s3", "xlsx"}
}

// chosen returns the cases that are to run.
func (s *settings) chosen() ([]string, error) {
	if s.only == "" {
		return cases(), nil
	}
	names := strings.Split(s.only, ",")
	for _, name := range names {
		if !slices.Contains(cases(), name) {
			return nil, fmt.Errorf("there is no case %q: choose from %s", name, strings.Join(cases(), ", "))
		}
	}
	return names, nil
}

// runCase runs a case once with a program, without anything that an earlier run left.
func (b *bench) runCase(ctx context.Context, name, program string) (d done, err error) {
	state, report := filepath.Join(b.dir, "state"), filepath.Join(b.dir, "report.json")
	for _, earlier := range []string{state, report, filepath.Join(b.dir, "out", "day")} {
		if err := os.RemoveAll(earlier); err != nil {
			return d, err
		}
	}
	environment := []string{"FORMETL_API_KEY=" + formservice.DefaultKey, "AWS_ACCESS_KEY_ID=" + needs.S3AccessKey, "AWS_SECRET_ACCESS_KEY=" + needs.S3SecretKey}
	args := []string{"--progress", "off", "--log-level", "warn", "--state", state, "--report", report}
	export := []string{
		"export", "--base-url", b.service.URL, "--account", formservice.DefaultAccount, "--form", "form1", "--timezone", "UTC",
		"--concurrency", strconv.Itoa(b.concurrency),
	}
	switch name {
	case "by day":
		file := filepath.Join(b.dir, "day.yaml")
		if err := os.WriteFile(file, fmt.Appendf(nil, byDay, b.service.URL, formservice.DefaultAccount, b.concurrency, filepath.Join(b.dir, "out", "day")), 0o600); err != nil {
			return d, err
		}
		args = slices.Concat([]string{"run", file}, args)
	case "s3":
		args = slices.Concat(export, args, []string{"-o", "s3://bench/form1.parquet", "--s3-endpoint", b.s3.URL, "--s3-region", "us-east-1", "--s3-path-style"})
	default:
		file := filepath.Join(b.dir, "out", "form1."+name)
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) { // without state, it is somebody else's
			return d, err
		}
		args = slices.Concat(export, args, []string{"-o", file})
	}
	if d.usage, err = measured(ctx, environment, program, args...); err != nil {
		return d, err
	}
	return d, b.readReport(report, &d)
}

// byDay is a definition of Parquet with one part a day.
const byDay = `version: 1
name: bench
source:
  base_url: %s
  account: %s
  api_key: ${env:FORMETL_API_KEY}
  timezone: UTC
  requests: {concurrency: %d}
forms: [form1]
load:
  - path: %s/
    format: parquet
    partition: day
`

// readReport takes the numbers of requests from the report of a run. It returns an
// error if the run did not write every result.
func (b *bench) readReport(name string, d *done) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var report struct {
		Forms []struct {
			Rows     int64
			Requests struct{ Results, Count int64 }
		}
	}
	if err := json.Unmarshal(data, &report); err != nil {
		return err
	}
	if len(report.Forms) != 1 || report.Forms[0].Rows != int64(b.results) {
		return fmt.Errorf("%s does not say that %d results were written: %s", name, b.results, data)
	}
	d.results, d.counts = report.Forms[0].Requests.Results, report.Forms[0].Requests.Count
	return nil
}
