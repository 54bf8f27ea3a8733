package transform

import (
	"errors"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestParseInt(t *testing.T) {
	for _, tt := range []struct {
		text   string
		want   int64
		reason string
	}{
		{"0", 0, ""},
		{"-0", 0, ""},
		{"+7", 7, ""},
		{"007", 7, ""},
		{"9223372036854775807", math.MaxInt64, ""},
		{"-9223372036854775808", math.MinInt64, ""},
		{strings.Repeat("0", 50) + "1", 1, ""},
		{"9223372036854775808", 0, reasonIntRange},
		{"-9223372036854775809", 0, reasonIntRange},
		{"99999999999999999999999", 0, reasonIntRange},
		{"99999999999999999999999x", 0, reasonIntRange},
		{"", 0, reasonInt},
		{"-", 0, reasonInt},
		{"+-1", 0, reasonInt},
		{"1.0", 0, reasonInt},
		{"1e3", 0, reasonInt},
		{"1_000", 0, reasonInt},
		{"1,000", 0, reasonInt},
		{"0x10", 0, reasonInt},
		{"١٢", 0, reasonInt},
	} {
		if got, reason := parseInt([]byte(tt.text)); got != tt.want || reason != tt.reason {
			t.Errorf("parseInt(%q) = %d, %q", tt.text, got, reason)
		}
	}
}

func TestParseFloat(t *testing.T) {
	for _, tt := range []struct {
		text   string
		want   float64
		reason string
	}{
		{"0", 0, ""},
		{"1.5", 1.5, ""},
		{".5", 0.5, ""},
		{"5.", 5, ""},
		{"+1e3", 1000, ""},
		{"-2.5E-1", -0.25, ""},
		{"1e400", 0, reasonFloatBig},
		{"1e-400", 0, reasonFloatBig},
		{"-1e-400", 0, reasonFloatBig},
		{"-0.0e-400", math.Copysign(0, -1), ""},
		{"-1e400", 0, reasonFloatBig},
		{"", 0, reasonFloat},
		{".", 0, reasonFloat},
		{"e5", 0, reasonFloat},
		{"1e", 0, reasonFloat},
		{"NaN", 0, reasonFloat},
		{"Inf", 0, reasonFloat},
		{"infinity", 0, reasonFloat},
		{"0x1p3", 0, reasonFloat},
		{"1_0", 0, reasonFloat},
		{"1,5", 0, reasonFloat},
		{"--1", 0, reasonFloat},
	} {
		if got, reason := parseFloat([]byte(tt.text)); got != tt.want || reason != tt.reason {
			t.Errorf("parseFloat(%q) = %v, %q", tt.text, got, reason)
		}
	}
}

func TestParseBool(t *testing.T) {
	for text, want := range map[string]string{
		"true": "true", "TRUE": "true", "True": "true", "1": "true",
		"false": "false", "False": "false", "0": "false",
		"": reasonBool, "yes": reasonBool, "t": reasonBool, "01": reasonBool, "-1": reasonBool, "true.": reasonBool,
		"\x54\x52\x55\x05": reasonBool, // differs from "true" in the bit of letter case only where that is no letter
	} {
		got, reason := parseBool([]byte(text))
		if reason == "" {
			reason = strconv.FormatBool(got)
		}
		if reason != want {
			t.Errorf("parseBool(%q) = %s, want %s", text, reason, want)
		}
	}
}

func TestParseDecimal(t *testing.T) {
	nines := strings.Repeat("9", 38)
	for _, tt := range []struct {
		text             string
		precision, scale int32
		want, reason     string
	}{
		{"12.50", 12, 2, "12.50", ""},
		{"-12.5", 12, 2, "-12.50", ""},
		{"+3", 12, 2, "3.00", ""},
		{".5", 12, 2, "0.50", ""},
		{"5.", 12, 2, "5.00", ""},
		{"-0", 12, 2, "0.00", ""},
		{"000123.4500000", 5, 2, "123.45", ""},
		{"9999999999.99", 12, 2, "9999999999.99", ""},
		{nines, 38, 0, nines, ""},
		{"-" + nines, 38, 0, "-" + nines, ""},
		{"0." + nines, 38, 38, "0." + nines, ""},
		{"18446744073709551616", 38, 0, "18446744073709551616", ""}, // 2^64
		{"0.0", 1, 0, "0", ""},
		{"1.005", 12, 2, "", reasonScale},
		{"10000000000", 12, 2, "", reasonPrecision},
		{"1", 2, 2, "", reasonPrecision},
		{nines + "9", 38, 0, "", reasonPrecision},
		{"", 12, 2, "", reasonDecimal},
		{".", 12, 2, "", reasonDecimal},
		{"-", 12, 2, "", reasonDecimal},
		{"1.2.3", 12, 2, "", reasonDecimal},
		{"1,5", 12, 2, "", reasonDecimal},
		{"1e2", 12, 2, "", reasonDecimal},
		{"$5", 12, 2, "", reasonDecimal},
		{"0x5", 12, 2, "", reasonDecimal},
	} {
		n, reason := parseDecimal([]byte(tt.text), tt.precision, tt.scale)
		got := ""
		if reason == "" {
			got = n.ToString(tt.scale)
		}
		if got != tt.want || reason != tt.reason {
			t.Errorf("parseDecimal(%q, %d, %d) = %s, %q; want %s, %q", tt.text, tt.precision, tt.scale, got, reason, tt.want, tt.reason)
		}
	}
}

func TestTrim(t *testing.T) {
	for text, want := range map[string]string{"": "", " \t\r\n\v\f": "", " a b\n": "a b", "\u00a0x": "\u00a0x", "x\x00": "x\x00"} {
		if got := string(trim([]byte(text))); got != want {
			t.Errorf("trim(%q) = %q", text, got)
		}
	}
}

func FuzzParseInt(f *testing.F) {
	for _, s := range []string{"0", "-9223372036854775808", "9223372036854775808", "+", "1_0", "00", "18446744073709551616", "1a", "20000000000000000000A"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, reason := parseInt([]byte(s))
		want, err := strconv.ParseInt(s, 10, 64)
		if (reason == "") != (err == nil) || err == nil && got != want {
			t.Errorf("parseInt(%q) = %d, %q; strconv: %d, %v", s, got, reason, want, err)
		}
		if outside := errors.Is(err, strconv.ErrRange); outside != (reason == reasonIntRange) {
			t.Errorf("parseInt(%q): %q; strconv: %v", s, reason, err)
		}
	})
}

func FuzzParseFloat(f *testing.F) {
	for _, s := range []string{"0", "-1.5e-3", "NaN", "0x1p-2", "1_0.5", "1e999", "1e-999", ".", "+.e1", "Infinity", "1.7976931348623159e308"} {
		f.Add(s)
	}
	strict := regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
	f.Fuzz(func(t *testing.T, s string) {
		got, reason := parseFloat([]byte(s))
		want, err := strconv.ParseFloat(s, 64)
		mantissa, _, _ := strings.Cut(strings.ToLower(s), "e")
		lost := want == 0 && strings.ContainsAny(mantissa, "123456789")
		fits := strict.MatchString(s) && err == nil && !lost
		if (reason == "") != fits || fits && math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("parseFloat(%q) = %v, %q; strconv: %v, %v", s, got, reason, want, err)
		}
	})
}

func FuzzParseDecimal(f *testing.F) {
	for _, s := range []string{"0", "-12.50", "1.005", ".", "99999999999999999999999999999999999999", "1e5", "00.00", "+.5", "1/2", "1_0"} {
		f.Add(s, uint8(12), uint8(2))
		f.Add(s, uint8(38), uint8(38))
		f.Add(s, uint8(38), uint8(0))
	}
	strict := regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)$`)
	f.Fuzz(func(t *testing.T, s string, p, q uint8) {
		precision := int32(p)%38 + 1
		scale := int32(q) % (precision + 1)
		n, reason := parseDecimal([]byte(s), precision, scale)
		if !strict.MatchString(s) {
			if reason != reasonDecimal {
				t.Errorf("parseDecimal(%q) = %v, %q", s, n, reason)
			}
			return
		}
		want, ok := new(big.Rat).SetString(strings.TrimPrefix(s, "+"))
		if !ok {
			t.Fatalf("big.Rat refuses %q", s)
		}
		unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
		most := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
		want.Mul(want, new(big.Rat).SetInt(unit))
		fits := want.IsInt() && want.Num().CmpAbs(most) < 0
		if (reason == "") != fits || fits && n.BigInt().Cmp(want.Num()) != 0 {
			t.Errorf("parseDecimal(%q, %d, %d) = %v, %q; big.Rat: %v", s, precision, scale, n.BigInt(), reason, want)
		}
	})
}

func FuzzParseBool(f *testing.F) {
	for _, s := range []string{"true", "FALSE", "1", "0", "yes", "", "tru\u0065"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, reason := parseBool([]byte(s))
		yes := s == "1" || len(s) == 4 && strings.EqualFold(s, "true")
		no := s == "0" || len(s) == 5 && strings.EqualFold(s, "false")
		if (reason == "") != (yes || no) || got != yes {
			t.Errorf("parseBool(%q) = %v, %q", s, got, reason)
		}
	})
}
