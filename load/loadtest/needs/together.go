package needs

import (
	"flag"
	"strconv"
)

// Together lets so many tests of this package run at once, unless -parallel says how
// many. It is for tests that mostly wait for other processes: go test lets no more of
// them run than there are processors. A TestMain calls it first.
func Together(tests int) {
	const name = "test.parallel"
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == name })
	if !asked {
		_ = flag.Set(name, strconv.Itoa(tests)) // fails for what is no number only
	}
}
