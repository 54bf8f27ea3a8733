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

func TestTrim(t *testing.T) {
	for text, want := range map[string]string{"": "", " \t\r\n\v\f": "", " a b\n": "a b", "\u00a0x": "\u00a0x", "x\x00": "x\x00"} {
		if got := string(trim([]byte(text))); got != want {
			t.Errorf("trim(%q) = %q", text, got)
		}
	}
}

func FuzzParseInt(f *testing.F) {
	for _, s := range []string{
		"0", "-0", "+7", "007", "9223372036854775807", "-9223372036854775808", strings.Repeat("0", 50) + "1", "9223372036854775808", "-9223372036854775809",
		"99999999999999999999999", "99999999999999999999999x", "", "-", "+", "+-1", "1.0", "1e3", "1_000", "1,000", "0x10", "١٢", "00", "18446744073709551616",
		"1a", "20000000000000000000A",
	} {
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
	for _, s := range []string{
		"0", "1.5", ".5", "5.", "+1e3", "-2.5E-1", "1e400", "1e-400", "-1e-400", "-0.0e-400", "-1e400", "", ".", "e5", "1e", "NaN", "Inf", "infinity", "0x1p3",
		"1_0", "1,5", "--1", "-1.5e-3", "0x1p-2", "1_0.5", "1e999", "+.e1", "Infinity", "1.7976931348623159e308",
	} {
		f.Add(s)
	}
	strict := regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
	f.Fuzz(func(t *testing.T, s string) {
		got, reason := parseFloat([]byte(s))
		want, err := strconv.ParseFloat(s, 64)
		mantissa, _, _ := strings.Cut(strings.ToLower(s), "e")
		lost := want == 0 && strings.ContainsAny(mantissa, "123456789")
		fits := strict.MatchString(s) && err == nil && !lost
		big := strict.MatchString(s) && !fits
		if (reason == "") != fits || (reason == reasonFloatBig) != big || fits && math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("parseFloat(%q) = %v, %q; strconv: %v, %v", s, got, reason, want, err)
		}
	})
}

func FuzzParseDecimal(f *testing.F) {
	for _, s := range []string{
		"0", "12.50", "-12.5", "+3", ".5", "5.", "-0", "000123.4500000", "9999999999.99", strings.Repeat("9", 38), "-" + strings.Repeat("9", 38),
		"0." + strings.Repeat("9", 38), "18446744073709551616", "0.0", "1.005", "10000000000", "1", strings.Repeat("9", 39), "", ".", "-", "1.2.3", "1,5", "1e2",
		"$5", "0x5", "00.00", "+.5", "1/2", "1_0",
	} {
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
	for _, s := range []string{"true", "TRUE", "True", "1", "false", "FALSE", "False", "0", "", "yes", "t", "01", "-1", "true.", "\x54\x52\x55\x05"} {
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
