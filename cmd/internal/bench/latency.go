package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"
)

// slow is an export that mostly waits for the service.
type slow struct {
	results, concurrency int
	latency              time.Duration
}

// measureLatency runs exports on services that take long to answer. The least time
// that an export can take is that of its requests, with as many at once as allowed.
func (s *settings) measureLatency(ctx context.Context, dir string, out io.Writer) error {
	if err := os.MkdirAll(filepath.Join(dir, "out"), 0o700); err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "results\tlatency\tat once\trequests\twall s\tleast s\twall over least\t")
	for _, export := range []slow{{20_000, 4, 300 * time.Millisecond}, {60_000, 8, 50 * time.Millisecond}} {
		b := &bench{settings: *s, dir: dir}
		b.results, b.concurrency = export.results, export.concurrency
		if err := b.waitFor(ctx, w, export.latency); err != nil {
			return err
		}
	}
	return w.Flush()
}

// waitFor prints a row: the median of all rounds but the first, which fills the service.
func (b *bench) waitFor(ctx context.Context, w io.Writer, latency time.Duration) (err error) {
	if b.service, err = b.startService(ctx, b.results, latency); err != nil {
		return err
	}
	defer b.service.stop()
	var rounds []done
	for round := range b.rounds + 1 {
		d, err := b.runFormetl(ctx, "csv", b.program)
		if err != nil {
			return err
		}
		if round > 0 {
			rounds = append(rounds, d)
		}
	}
	wall := median(rounds, func(d done) float64 { return d.wall.Seconds() })
	least := func(d done) float64 {
		return float64(d.results+d.counts) * latency.Seconds() / float64(b.concurrency)
	}
	fmt.Fprintf(w, "%d\t%s\t%d\t%.0f\t%.2f\t%.2f\t%.3f\t\n", b.results, latency, b.concurrency,
		median(rounds, func(d done) float64 { return float64(d.results + d.counts) }), wall, median(rounds, least),
		median(rounds, func(d done) float64 { return d.wall.Seconds() / least(d) }))
	return nil
}
