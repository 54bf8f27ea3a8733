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

type counters struct{ results, count, other, retries, bytes atomic.Int64 }

// Requests returns what the client has sent so far.
func (c *Client) Requests() Requests {
	return Requests{
		Results: c.stats.results.Load(), Count: c.stats.count.Load(), Other: c.stats.other.Load(),
		Retries: c.stats.retries.Load(), Bytes: c.stats.bytes.Load(),
	}
}

func (c *counters) add(transaction string, attempt int) {
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
