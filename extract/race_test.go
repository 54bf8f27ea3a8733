//go:build race

package extract_test

// manyResults is smaller under the race detector, which makes the decoder and
// the test service ten times slower. The race is not one of size.
const manyResults = 60_000
