package reading

import (
	"context"

	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/transform"
)

// Stats returns the sums of the statistics of windows, added in order of time.
// So the order of added columns does not depend on which window was read first.
// Stats reads the records of all pieces from the checkpoint.
func Stats(ctx context.Context, c *checkpoint.Checkpoint, windows []*Window) (transform.Stats, error) {
	sum := Counted(windows)
	for _, w := range windows {
		for _, p := range w.Pieces() {
			seen, err := c.Seen(ctx, p)
			if err != nil {
				return sum, err
			}
			sum.Add(transform.Stats{Seen: seen})
		}
	}
	return sum, nil
}

// Counted returns the same sums as Stats, but without Seen, and so reads nothing from the
// checkpoint.
func Counted(windows []*Window) (sum transform.Stats) {
	for _, w := range windows {
		sum.Add(w.Stats)
	}
	return sum
}

// Results returns how many results the windows hold, including rejected ones.
func Results(windows []*Window) (n int64) {
	for _, w := range windows {
		n += w.Results()
	}
	return n
}
