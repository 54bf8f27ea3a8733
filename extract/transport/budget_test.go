package transport

import (
	"testing"
	"time"
)

func TestBudgetErrorSaysWhen(t *testing.T) {
	until := time.Date(2026, 3, 1, 12, 30, 7, 1, time.FixedZone("", -6*3600))
	for per, want := range map[time.Duration]string{
		24 * time.Hour: "formetl's budget of 50 requests per 24 hours is used up; the next request can be sent at 2026-03-01T12:30:08-06:00",
		time.Minute:    "formetl's budget of 50 requests per minute is used up; the next request can be sent at 2026-03-01T12:30:08-06:00",
		time.Hour:      "formetl's budget of 50 requests per 1h0m0s is used up; the next request can be sent at 2026-03-01T12:30:08-06:00",
	} {
		if got := (&BudgetError{Limit: 50, Per: per, Until: until}).Error(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
