package jsonout_test

import (
	"testing"

	"github.com/formetl/formetl/load/jsonout"
	"github.com/formetl/formetl/load/loadtest"
)

func FuzzScan(f *testing.F) {
	loadtest.FuzzScan(f, jsonout.NDJSON(), "{\"id\":1,\"a\":[1,null]}\n{\"id\":\"2\",\"a\":{}}\n", "[{\"id\":1},{\"id\":2}]", "[]", "{\"id\":1}{\"x\":2}", "[{\"id\":1")
}

func FuzzScanJSON(f *testing.F) {
	loadtest.FuzzScan(f, jsonout.JSON(), "{\"id\":1,\"a\":[1,null]}\n{\"id\":\"2\",\"a\":{}}\n", "[{\"id\":1},{\"id\":2}]", "[]", "{\"id\":1}{\"x\":2}", "[{\"id\":1")
}
