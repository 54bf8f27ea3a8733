package extract

import "sync/atomic"

// Requests counts the attempts that a client has sent.
type Requests struct {
	Results int64 // Get Results, first attempts
	Count   int64 // Get Results Count, first attempts
	Other   int64 // the other transactions, first attempts
	Retries int64 // attempts after the first, of any transaction
	Bytes   int64 // of all answers, after decompression
}

// counters are a client's; what a fork counts counts above it too.
type counters struct {
	above *counters

	results, count, other, retries, bytes         atomic.Int64
	ok, busy, refused, failed, invalid, cancelled atomic.Int64
}

// Requests returns what the client and its forks have sent so far.
func (c *Client) Requests() Requests {
	return Requests{
		Results: c.stats.results.Load(), Count: c.stats.count.Load(), Other: c.stats.other.Load(),
		Retries: c.stats.retries.Load(), Bytes: c.stats.bytes.Load(),
	}
}

// Outcomes returns what became of the attempts that the client and its forks
// have sent so far, by OutcomeOK and its like, all of which it holds. They add
// up to the attempts of Requests, but for those that are still under way.
func (c *Client) Outcomes() map[string]int64 {
	outcomes := map[string]int64{}
	for _, o := range []string{OutcomeOK, OutcomeBusy, OutcomeRefused, OutcomeFailed, OutcomeInvalid, OutcomeCancelled} {
		outcomes[o] = c.stats.of(o).Load()
	}
	return outcomes
}

// sent counts an attempt that goes out now.
func (c *counters) sent(transaction string, attempt int) {
	for ; c != nil; c = c.above {
		switch {
		case attempt > 1:
			c.retries.Add(1)
		case transaction == getResults:
			c.results.Add(1)
		case transaction == getCount:
			c.count.Add(1)
		default:
			c.other.Add(1)
		}
	}
}

// came counts what became of an attempt.
func (c *counters) came(outcome string, bytes int) {
	for ; c != nil; c = c.above {
		c.of(outcome).Add(1)
		c.bytes.Add(int64(bytes))
	}
}

func (c *counters) of(outcome string) *atomic.Int64 {
	switch outcome {
	case OutcomeOK:
		return &c.ok
	case OutcomeBusy:
		return &c.busy
	case OutcomeRefused:
		return &c.refused
	case OutcomeFailed:
		return &c.failed
	case OutcomeInvalid:
		return &c.invalid
	}
	return &c.cancelled
}
