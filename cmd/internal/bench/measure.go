package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// measure runs the named cases and prints a table.
func (s *settings) measure(ctx context.Context, dir string, names []string, out io.Writer) (err error) {
	b := &bench{settings: *s, dir: dir}
	if err := os.MkdirAll(filepath.Join(dir, "out"), 0o700); err != nil {
		return err
	}
	b.service = s.startService()
	defer b.service.Close()
	if slices.Contains(names, "s3") {
		bucket := filepath.Join(dir, "s3")
		if err := os.MkdirAll(filepath.Join(bucket, "bench"), 0o700); err != nil {
			return err
		}
		if b.s3, err = needs.StartS3(ctx, needs.Versitygw(), bucket, nil); err != nil {
			return err
		}
		defer b.s3.Stop()
	}
	for _, name := range names { // so that the service keeps its answers
		if _, err := b.runCase(ctx, name, b.program); err != nil {
			return err
		}
	}
	programs := []string{s.program}
	if s.compare != "" {
		programs = append(programs, s.compare)
	}
	took := map[string][][]done{} // by case, program and round
	for round := range s.rounds {
		for _, name := range names {
			if round == 0 {
				took[name] = make([][]done, len(programs))
			}
			for i, program := range programs {
				d, err := b.runCase(ctx, name, program)
				if err != nil {
					return err
				}
				took[name][i] = append(took[name][i], d)
			}
		}
	}
	fmt.Fprintf(out, "%d results of %d items, %d requests at once, medians of %d rounds, load %s at the end\n\n", s.results, s.items, s.concurrency, s.rounds, load())
	if err := b.print(out, names, took); err != nil || s.compare == "" {
		return err
	}
	return b.printPairs(out, names, took)
}

// print prints what each case took with the first program.
func (b *bench) print(out io.Writer, names []string, took map[string][][]done) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "case\tresults/s\tCPU s\tmost MB\trequests\tof pages\tidle\t")
	if b.latency > 0 {
		fmt.Fprint(w, "of least\t")
	}
	fmt.Fprintln(w)
	pages := (b.results + extract.PageSize - 1) / extract.PageSize
	for _, name := range names {
		rounds := took[name][0]
		cpu := median(rounds, func(d done) float64 { return d.cpu.Seconds() })
		wall := median(rounds, func(d done) float64 { return d.wall.Seconds() })
		fmt.Fprintf(w, "%s\t%.0f\t%.2f\t%.0f\t", name, float64(b.results)/wall, cpu, median(rounds, func(d done) float64 { return float64(d.resident) / 1e6 }))
		requests := median(rounds, func(d done) float64 { return float64(d.results + d.counts) })
		fmt.Fprintf(w, "%.0f\t%.3f\t%.0f %%\t", requests, requests/float64(pages), 100*max(0, 1-cpu/wall))
		if b.latency > 0 { // the requests take so long, with as many at once as allowed
			fmt.Fprintf(w, "%.3f\t", median(rounds, func(d done) float64 {
				return d.wall.Seconds() * float64(b.concurrency) / (float64(d.results+d.counts) * b.latency.Seconds())
			}))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// printPairs prints the CPU of the program over that of the other one.
func (b *bench) printPairs(out io.Writer, names []string, took map[string][][]done) error {
	fmt.Fprintf(out, "\nCPU over that of %s, in pairs\n\n", b.compare)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "case\tmedian\tleast\tmost\twall\tmemory\t")
	for _, name := range names {
		ours, theirs := took[name][0], took[name][1]
		cpu := ratios(ours, theirs)
		wall := median(ours, func(d done) float64 { return d.wall.Seconds() }) / median(theirs, func(d done) float64 { return d.wall.Seconds() })
		resident := median(ours, func(d done) float64 { return float64(d.resident) }) / median(theirs, func(d done) float64 { return float64(d.resident) })
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", name, median(cpu, same), slices.Min(cpu), slices.Max(cpu), wall, resident)
	}
	return w.Flush()
}

// ratios returns the CPU of each round over that of the same round of others.
func ratios(rounds, others []done) []float64 {
	list := make([]float64, len(rounds))
	for i := range rounds {
		list[i] = float64(rounds[i].cpu) / float64(max(others[i].cpu, time.Nanosecond))
	}
	return list
}

func same(v float64) float64 { return v }

// median returns the middle value of a list that is not empty.
func median[T any](list []T, value func(T) float64) float64 {
	values := make([]float64, len(list))
	for i, v := range list {
		values[i] = value(v)
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
