package cells_test

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/formetl/formetl/load/internal/cells"
)

func TestAppendFloat(t *testing.T) {
	for want, f := range map[string]float64{
		"0": 0, "-0.0": math.Copysign(0, -1), "1": 1, "-1.5": -1.5, "0.1": 0.1, "1000000": 1e6, "123456789012345680000": 123456789012345678901,
		"1e+21": 1e21, "-1e+21": -1e21, "0.000001": 1e-6, "1e-7": 1e-7, "1.5e-9": 1.5e-9, "1e-10": 1e-10, "5e-324": 5e-324, "1.7976931348623157e+308": math.MaxFloat64,
	} {
		if got := string(cells.AppendFloat([]byte("x"), f)); got != "x"+want {
			t.Errorf("%v: %s, not x%s", f, got, want)
		}
	}
}

func FuzzAppendFloat(f *testing.F) {
	for _, v := range []float64{0, 1, -1, 1e21, 1e-7, 0.1, math.MaxFloat64, 5e-324} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return
		}
		text := cells.AppendFloat(nil, v)
		back, err := strconv.ParseFloat(string(text), 64)
		if err != nil || math.Float64bits(back) != math.Float64bits(v) || !json.Valid(text) {
			t.Errorf("%v gives %s, which reads back as %v: %v", v, text, back, err)
		}
	})
}

func TestAppendTimestamp(t *testing.T) {
	chicago, err := time.LoadLocation("America/Chicago")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at   time.Time
		zone *time.Location
		want string
	}{
		{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.UTC, "2026-01-02T03:04:05Z"},
		{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), chicago, "2026-01-01T21:04:05-06:00"},
		{time.Date(2026, 1, 2, 3, 4, 5, 1000, time.UTC), time.UTC, "2026-01-02T03:04:05.000001Z"},
		{time.Date(2026, 1, 2, 3, 4, 5, 5e8, time.UTC), chicago, "2026-01-01T21:04:05.500000-06:00"},
		{time.Date(2026, 3, 8, 7, 59, 59, 0, time.UTC), chicago, "2026-03-08T01:59:59-06:00"},
		{time.Date(2026, 3, 8, 8, 0, 0, 0, time.UTC), chicago, "2026-03-08T03:00:00-05:00"},
		{time.Date(2026, 11, 1, 6, 30, 0, 0, time.UTC), chicago, "2026-11-01T01:30:00-05:00"},
		{time.Date(2026, 11, 1, 7, 30, 0, 0, time.UTC), chicago, "2026-11-01T01:30:00-06:00"},
		{time.Date(1969, 12, 31, 23, 59, 59, 999999000, time.UTC), time.UTC, "1969-12-31T23:59:59.999999Z"},
		// Local mean time had an offset of -5:50:36, which RFC 3339 cannot say.
		{time.Date(1880, 1, 1, 12, 0, 0, 0, time.UTC), chicago, "1880-01-01T12:00:00Z"},
		{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.FixedZone("", 5*3600+45*60), "2026-01-01T05:45:00+05:45"},
	} {
		if got := string(cells.AppendTimestamp(nil, c.at.UnixMicro(), c.zone)); got != c.want {
			t.Errorf("%s in %s: %s, not %s", c.at, c.zone, got, c.want)
		}
	}
}

func FuzzAppendTimestamp(f *testing.F) {
	f.Add(int64(0))
	f.Add(int64(-1))
	f.Add(int64(1_793_500_200_000_000))
	chicago, err := time.LoadLocation("America/Chicago")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, us int64) {
		if y := time.UnixMicro(us).UTC().Year(); y < 1 || y > 9998 {
			return
		}
		text := string(cells.AppendTimestamp(nil, us, chicago))
		back, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || back.UnixMicro() != us {
			t.Errorf("%d gives %s, which reads back as %d: %v", us, text, back.UnixMicro(), err)
		}
	})
}

func FuzzAppendDate(f *testing.F) {
	for _, d := range []int32{0, -1, 19782, -719162, 2932896, -719893, math.MinInt32, math.MaxInt32} {
		f.Add(d)
	}
	f.Fuzz(func(t *testing.T, days int32) {
		want := time.Unix(int64(days)*86400, 0).UTC().Format(time.DateOnly)
		if got := string(cells.AppendDate([]byte("x"), days)); got != "x"+want {
			t.Errorf("%d: %s, not x%s", days, got, want)
		}
	})
}

func TestAppendDecimal(t *testing.T) {
	most := strings.Repeat("9", 38)
	for _, c := range []struct {
		digits string
		scale  int
		want   string
	}{
		{"0", 0, "0"},
		{"0", 2, "0.00"},
		{"5", 2, "0.05"},
		{"-5", 2, "-0.05"},
		{"-12345", 2, "-123.45"},
		{"12345", 5, "0.12345"},
		{"100", 2, "1.00"},
		{"7", 0, "7"},
		{most, 0, most},
		{"-" + most, 38, "-0." + most},
		{most, 10, most[:28] + "." + most[28:]},
		{"9223372036854775808", 1, "922337203685477580.8"},
		{"-9223372036854775808", 0, "-9223372036854775808"},
		{"1", 38, "0." + strings.Repeat("0", 37) + "1"},
	} {
		n, ok := new(big.Int).SetString(c.digits, 10)
		if !ok {
			t.Fatal(c.digits)
		}
		if got := string(cells.AppendDecimal([]byte("x"), decimal128.FromBigInt(n), c.scale)); got != "x"+c.want {
			t.Errorf("%s, scale %d: %s, not x%s", c.digits, c.scale, got, c.want)
		}
	}
}

func FuzzAppendDecimal(f *testing.F) {
	f.Add(int64(0), uint64(1), uint8(2))
	f.Add(int64(-1), uint64(math.MaxUint64), uint8(38))
	f.Add(int64(1<<60), uint64(0), uint8(0))
	f.Fuzz(func(t *testing.T, high int64, low uint64, scale uint8) {
		n, s := decimal128.New(high, low), int(scale%39)
		text := string(cells.AppendDecimal(nil, n, s))
		value, ok := new(big.Rat).SetString(text)
		want := new(big.Rat).SetFrac(n.BigInt(), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(s)), nil))
		if !ok || value.Cmp(want) != 0 {
			t.Fatalf("%s with scale %d gives %s", n.BigInt(), s, text)
		}
		if point := strings.IndexByte(text, '.'); s > 0 && len(text)-1-point != s {
			t.Errorf("%s does not have %d digits", text, s)
		}
	})
}

// FuzzScan holds the scans to plain loops.
func FuzzScan(f *testing.F) {
	for _, s := range []string{"", "a", "12345678", "1234567,", "12345678,", "\x7f\x80", "a\"b", "\\", "\x1f", "ü", "aaaaaaa\n", "\xac\xa2,", " ! #", "1234567;", "12345678\t"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := cells.IndexCSV(s), strings.IndexAny(s, ",\"\r\n"); got != want {
			t.Errorf("IndexCSV(%q) is %d, not %d", s, got, want)
		}
		want := -1
		for i := range len(s) {
			if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
				want = i
				break
			}
		}
		if got := cells.IndexJSON(s); got != want {
			t.Errorf("IndexJSON(%q) is %d, not %d", s, got, want)
		}
	})
}

// FuzzAppendLocal holds the text to what the time package makes of it.
func FuzzAppendLocal(f *testing.F) {
	for _, us := range []int64{0, -1, 1_793_500_200_000_000, 1_767_322_999_123_000, -2_717_640_000_000_000, 253_402_300_799_000_000, 253_402_400_000_000_000, -62_200_000_000_000_000} {
		f.Add(us)
	}
	chicago, err := time.LoadLocation("America/Chicago")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, us int64) {
		if y := time.UnixMicro(us).UTC().Year(); y < -9000 || y > 20_000 {
			return
		}
		at := time.UnixMicro(us).In(chicago)
		layout := time.DateTime
		switch {
		case at.Nanosecond()%1_000_000 != 0:
			layout += ".000000"
		case at.Nanosecond() != 0:
			layout += ".000"
		}
		if got, want := string(cells.AppendLocal([]byte("x"), us, chicago)), "x"+at.Format(layout); got != want {
			t.Errorf("%d: %s, not %s", us, got, want)
		}
	})
}
