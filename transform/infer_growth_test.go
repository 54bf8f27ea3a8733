//go:build unix

package transform_test

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// headed is a page of so many headings, which no result has.
func headed(n int) []*page.Page {
	p := &page.Page{Headings: make([]page.Heading, n)}
	for i := range p.Headings {
		p.Headings[i] = page.Heading{ID: strconv.Itoa(i + 1), Label: "Question", Kind: page.KindItem}
	}
	return []*page.Page{p}
}

// Sixteen times the headings take about sixteen times the CPU, and not 256 times. The
// bound between lies far from both. The process's own CPU time counts, and the least of
// several tries, so that what else the machine does is no matter.
func TestInferIsLinear(t *testing.T) {
	needs.Slow(t)
	spent := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	fastest := func(n int) time.Duration {
		pages, least := headed(n), time.Hour
		for range 5 {
			began := spent()
			transform.Infer("form1", pages, schemas.ByLabel)
			least = min(least, spent()-began)
		}
		return max(least, time.Millisecond)
	}
	if few, many := fastest(4_000), fastest(64_000); many > 90*few {
		t.Errorf("4,000 headings take %s, 64,000 take %s", few, many)
	}
}
