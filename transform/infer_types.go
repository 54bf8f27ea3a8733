package transform

import (
	"fmt"
	"strings"

	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
)

const (
	// evidence is how many values it takes to infer another type than string.
	evidence = 5
	// longestCount is the most digits of whole numbers that are taken for
	// counts. Longer ones are taken for phone numbers and ids.
	longestCount = 9
	// shortestID is the least digits of numbers of equal length that are taken
	// for ids. A postal code may have five.
	shortestID = 5
	// narrow is the precision of inferred decimals, which fit into eight bytes.
	// It leaves room for at least headRoom more digits than the sample has.
	// Decimals that need more get the largest precision.
	narrow   = 18
	headRoom = 3
)

// fit chooses the type that all values fit without loss, and says why. identifier is a word of
// the field's label or item type that suggests ids, "" for none.
func (s *shapes) fit(identifier string) (schemas.Type, string) {
	text := schemas.Type{Kind: schemas.String}
	if s.values == 0 {
		return text, "no values, so the type cannot be told"
	}
	if s.values < evidence {
		return text, fmt.Sprintf("%s to tell the type (%d are needed)", few(s.values), evidence)
	}
	all := "all " + plain.Thousands(s.values) + " values are "
	switch s.values {
	case s.numbers.ints:
		if why := s.numbers.names(identifier); why != "" {
			return text, all + "whole numbers" + why
		}
		return schemas.Type{Kind: schemas.Int64}, all + "whole numbers"
	case s.numbers.ints + s.numbers.points:
		return s.numbers.decimal(all, identifier)
	case s.bools:
		return schemas.Type{Kind: schemas.Bool}, all + "true or false"
	case s.dates:
		return schemas.Type{Kind: schemas.Date}, all + "dates YYYY-MM-DD"
	case s.times:
		if s.skipped > 0 {
			return text, fmt.Sprintf("%stimes YYYY-MM-DD HH:MM:SS, but the account's time zone skips the hour of %d of them; check the zone", all, s.skipped)
		}
		return schemas.Type{Kind: schemas.Timestamp}, all + "times YYYY-MM-DD HH:MM:SS"
	case s.numbers.ints + s.numbers.padded:
		return text, fmt.Sprintf("%sdigits, %d of them with leading zeros, which a number would lose", all, s.numbers.padded)
	}
	return text, s.text()
}

// names says why whole numbers are taken for ids, "" if they are taken for counts.
// identifier is a word of the label or type that suggests ids, "" for none.
func (n *numbers) names(identifier string) string {
	switch {
	case identifier != "":
		return fmt.Sprintf(", but kept as text because of the word %q in the label or type", identifier)
	case n.longest > longestCount:
		return fmt.Sprintf(", but with up to %d digits, like ids and phone numbers", n.longest)
	case n.shortest == n.longest && n.longest >= shortestID:
		return fmt.Sprintf(", but all with %d digits, like ids and postal codes", n.longest)
	}
	return ""
}

// decimal chooses the type of numbers of which some have fractions, and says why.
func (n *numbers) decimal(all, identifier string) (schemas.Type, string) {
	text, digits := schemas.Type{Kind: schemas.String}, n.mostFraction
	why := all + fmt.Sprintf("numbers with up to %d decimals", digits)
	if n.leastFraction == digits && n.ints == 0 {
		why = all + fmt.Sprintf("numbers with %d decimals", digits)
	}
	switch {
	case identifier != "":
		return text, why + fmt.Sprintf(", but kept as text because of the word %q in the label or type", identifier)
	case n.leastFraction != digits && n.zeros > 0:
		return text, why + fmt.Sprintf(", %d of them with a zero at the end, which a number would lose", n.zeros)
	case n.whole+digits > schemas.MaxPrecision:
		return text, why + fmt.Sprintf(", with more than the %d digits of a decimal", schemas.MaxPrecision)
	}
	t := schemas.Type{Kind: schemas.Decimal, Precision: narrow, Scale: int32(digits)}
	if n.whole+digits+headRoom > narrow {
		t.Precision = schemas.MaxPrecision
	}
	return t, why
}

// text says why values fit no type but string.
func (s *shapes) text() string {
	if hint := s.foreign.hint(s.values); hint != "" {
		return fmt.Sprintf("all %s values look %s", plain.Thousands(s.values), hint)
	}
	for _, form := range []struct {
		n    int
		what string
	}{
		{s.numbers.ints, "whole numbers"},
		{s.numbers.ints + s.numbers.points, "numbers"},
		{s.bools, "true or false"},
		{s.dates, "dates YYYY-MM-DD"},
		{s.times, "times YYYY-MM-DD HH:MM:SS"},
	} {
		if form.n*5 >= s.values*4 {
			return fmt.Sprintf("%d of %d values are %s, the others are not", form.n, s.values, form.what)
		}
	}
	return "text"
}

// wallTimes chooses the type of a meta that is a wall-clock time by its id, and says why. The
// id decides even if there are few values or none. formats are the formats of times in another
// form than the service's own.
func (s *shapes) wallTimes() (t schemas.Type, why string, formats []string) {
	text, instant := schemas.Type{Kind: schemas.String}, schemas.Type{Kind: schemas.Timestamp}
	switch {
	case s.times != s.values:
		if fit := s.foreign.forms(s.values - s.times); len(fit) == 1 && s.skipped == 0 {
			formats := []string{fit[0].String()}
			if s.times > 0 {
				formats = append([]string{ownTime}, formats...)
			}
			return instant, "a time because of its id, in the format " + strings.Join(formats, " or "), formats
		}
		why := fmt.Sprintf("%d of %d values are not times YYYY-MM-DD HH:MM:SS", s.values-s.times, s.values)
		if hint := s.foreign.hint(s.values); hint != "" {
			why += "; all look " + hint
		}
		return text, why, nil
	case s.skipped > 0:
		return text, fmt.Sprintf("times, but the account's time zone skips the hour of %d of %d; check the zone", s.skipped, s.values), nil
	case s.values == 0:
		return instant, "a time because of its id; no values yet", nil
	}
	return instant, fmt.Sprintf("a time because of its id, and %s", fits(s.values)), nil
}

func fits(n int) string {
	if n == 1 {
		return "its only value is one"
	}
	return "all " + plain.Thousands(n) + " values are times"
}

func few(n int) string {
	if n == 1 {
		return "1 value is not enough"
	}
	return fmt.Sprintf("%d values are not enough", n)
}
