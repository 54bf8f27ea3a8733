package crashtest

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// Variables that ask for other random rounds than the usual ones.
const (
	seedVariable   = "FORMETL_CRASH_SEED"   // only the round of this seed
	roundsVariable = "FORMETL_CRASH_ROUNDS" // so many, with new seeds
)

// usualRounds is how many rounds a test has by default. Their seeds are
// always the same, so that a test that was green stays so.
const usualRounds = 10

// eachSeed runs a test for each of its rounds. The name of a round is its
// seed.
func eachSeed(t *testing.T, rounds int, test func(t *testing.T, random *rand.Rand)) {
	t.Helper()
	rounds, first := needs.Count(rounds, 2), uint64(1)
	switch {
	case os.Getenv(seedVariable) != "":
		rounds, first = 1, number(t, seedVariable)
	case os.Getenv(roundsVariable) != "":
		rounds = int(number(t, roundsVariable)) //nolint:gosec // nobody waits for so many
		first = rand.Uint64() >> 16
	}
	name := fnv.New64a()
	_, _ = name.Write([]byte(t.Name())) // it never fails; no two tests do the same
	hashed := name.Sum64()
	for seed := first; seed < first+uint64(rounds); seed++ { //nolint:gosec // not negative
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("replay it with %s=%d", seedVariable, seed)
				}
			})
			test(t, rand.New(rand.NewPCG(seed, hashed)))
		})
	}
}

func number(t *testing.T, variable string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(os.Getenv(variable), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// extent is how long a run of a kind is.
type extent struct {
	requests int // to the form service and the S3 server
	took     time.Duration
}

// measure runs a pipeline that nobody disturbs.
func measure(t *testing.T, k kind, o output) extent {
	t.Helper()
	w := newWorld(t, k, o)
	began := time.Now()
	w.run()
	return extent{w.moment.total(), time.Since(began)}
}

// aim describes one kill.
type aim struct {
	fault   string        // at a fault point, or
	request int           // at a request, or
	after   bool          // when it was answered
	pause   time.Duration // after a time
}

func (a aim) String() string {
	switch {
	case a.fault != "":
		return "killed at " + a.fault
	case a.request > 0 && a.after:
		return fmt.Sprintf("killed at the answer to request %d", a.request)
	case a.request > 0:
		return fmt.Sprintf("killed at request %d", a.request)
	}
	return fmt.Sprintf("killed after %s", a.pause)
}

// takeAim chooses a kill: at a fault point, at a request, or at any moment.
func takeAim(random *rand.Rand, second bool, e extent) aim {
	switch random.IntN(3) {
	case 0:
		all := crashes(second)
		c := all[random.IntN(len(all))]
		return aim{fault: c.String()}
	case 1:
		return aim{request: 1 + random.IntN(e.requests), after: random.IntN(2) == 1}
	}
	return aim{pause: time.Duration(random.Int64N(int64(e.took)))}
}

// shoot runs the pipeline, kills it as aimed and tells whether that was in
// time; a run that ended before ended well.
func (w *world) shoot(a aim) (killed bool) {
	w.t.Helper()
	var o outcome
	switch {
	case a.fault != "":
		o = w.do(w.pipeline(a.fault))
	case a.request > 0:
		p := w.pipeline("")
		w.moment.arm(a.request, a.after, p.kill)
		o = w.do(p)
		w.moment.disarm()
	default:
		p := w.pipeline("")
		timer := time.AfterFunc(a.pause, p.kill)
		o = w.do(p)
		timer.Stop()
	}
	w.t.Logf("%s: %t", a, o.killed)
	if !o.killed && o.code != 0 {
		w.t.Fatalf("the run ended with %d:\n%s", o.code, o.stderr)
	}
	return o.killed
}

// TestDatasetKilledAtRandom kills a run at any moment.
func TestDatasetKilledAtRandom(t *testing.T) { killedAtRandom(t, ndjsonDataset, 1) }

// TestDatasetKilledTwice kills the run that resumes from a killed one, too.
func TestDatasetKilledTwice(t *testing.T) { killedAtRandom(t, ndjsonDataset, 2) }

// TestFileKilledAtRandom does so with a single file.
func TestFileKilledAtRandom(t *testing.T) { killedAtRandom(t, csvFile, 1) }

// TestFileKilledTwice does so with a single file.
func TestFileKilledTwice(t *testing.T) { killedAtRandom(t, csvFile, 2) }

func killedAtRandom(t *testing.T, o output, kills int) {
	eachPlace(t, func(t *testing.T, k kind) {
		e := measure(t, k, o)
		eachSeed(t, usualRounds, func(t *testing.T, random *rand.Rand) {
			w := newWorld(t, k, o)
			second := random.IntN(3) > 0
			states := []rows{}
			if second {
				w.run()
				states = append(states, truth(w.form))
				change(w.form, random.IntN(100))
			}
			states = append(states, truth(w.form))
			for range kills {
				w.shoot(takeAim(random, second, e))
				w.oneOf(states...)
			}
			w.run()
			w.whole(truth(w.form))
			w.clean()
			w.whole(truth(w.form))
		})
	})
}
