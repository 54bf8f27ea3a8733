package reportpage

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/load"
)

// took is a length of time for people.
func took(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// instant is a moment in UTC.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// wall is a wall-clock time, without its clock where that is midnight.
func wall(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	if t.Equal(midnight(t)) {
		return t.Format(time.DateOnly)
	}
	return load.Wall(t).Format("2006-01-02 15:04:05")
}

func midnight(t time.Time) time.Time { return t.Truncate(24 * time.Hour) } // wall clock is stored as UTC

// percent is a share of a whole. Only all is 100 %, and only nothing is 0 %.
func percent(n, of int64) string {
	switch {
	case of <= 0 || n <= 0:
		return "0 %"
	case n >= of:
		return "100 %"
	}
	p := 100 * float64(n) / float64(of)
	switch {
	case p < 0.1:
		return "< 0.1 %"
	case p > 99.9:
		return "> 99.9 %"
	case p < 10 || p > 90:
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(p, 'f', 0, 64) + " %"
}

// width is a share of a whole as a width of the style.
func width(n, of int64) string {
	if of <= 0 {
		return "width:0"
	}
	return "width:" + number(100*min(1, float64(n)/float64(of))) + "%"
}

// number is a coordinate: one decimal is less than a pixel.
func number(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// count is a number of things, "–" for one that is not known.
func count(n *int64) string {
	if n == nil {
		return "–"
	}
	return show.Thousands(*n)
}

// some is a number, and nothing for 0, which would hide the others of a table.
func some(n int64) string {
	if n == 0 {
		return ""
	}
	return show.Thousands(n)
}

// either gives the first value if is is true, else the second.
func either[T any](is bool, then, otherwise T) T {
	if is {
		return then
	}
	return otherwise
}
