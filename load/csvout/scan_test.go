package csvout_test

import (
	"testing"

	"github.com/formetl/formetl/load/csvout"
	"github.com/formetl/formetl/load/loadtest"
)

func FuzzScan(f *testing.F) {
	loadtest.FuzzScan(f, csvout.Format(), "id,a\n1,x\n2,\"y\"\"\nz\"\n", "\ufeffid\r\n7\r\n", "a\tid\n\"\"\t3\n", "id\n\"", "")
}

func FuzzScanTSV(f *testing.F) {
	loadtest.FuzzScan(f, csvout.TSV(), "id,a\n1,x\n2,\"y\"\"\nz\"\n", "\ufeffid\r\n7\r\n", "a\tid\n\"\"\t3\n", "id\n\"", "")
}
