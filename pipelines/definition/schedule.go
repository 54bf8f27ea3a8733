package definition

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/formetl/formetl/pipelines/internal/strictyaml"
)

// cronField is one of the five fields of a schedule.
type cronField struct {
	name        string
	least, most int
	words       []string // names of the values, from least on
}

func cronFields() []cronField {
	return []cronField{
		{"minute", 0, 59, nil},
		{"hour", 0, 23, nil},
		{"day of the month", 1, 31, nil},
		{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
		{"day of the week", 0, 6, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
	}
}

// parseSchedule checks a schedule: the five fields of cron, in the account's zone. It
// takes what every scheduler reads in the same way, and returns it in lower case.
func parseSchedule(text string) (string, error) {
	values := strings.Fields(strings.ToLower(text))
	fields := cronFields()
	if len(values) != len(fields) {
		return "", fmt.Errorf("%s has %d fields, and a schedule has five: minute, hour, day of the month, month, day of the week; write `15 3 * * *` for a quarter past three each day", strictyaml.Quote(text), len(values))
	}
	for i, f := range fields {
		if err := f.check(values[i]); err != nil {
			return "", fmt.Errorf("the %s %s of the schedule %w", f.name, strictyaml.Quote(values[i]), err)
		}
	}
	if values[2] != "*" && values[4] != "*" {
		return "", errors.New("schedulers disagree about a day of the month together with a day of the week; write * for one of them")
	}
	return strings.Join(values, " "), nil
}

// check tells what is wrong with the field: a list of values, ranges and steps.
func (f cronField) check(list string) error {
	for _, one := range strings.Split(list, ",") {
		span, step, stepped := strings.Cut(one, "/")
		if n, err := strconv.Atoi(step); stepped && (err != nil || n < 1 || n > f.most) {
			return fmt.Errorf("has the step %s; write a number from 1 to %d", strictyaml.Quote(step), f.most)
		}
		if span == "*" {
			continue
		}
		from, to, ranged := strings.Cut(span, "-")
		first, err := f.value(from)
		if err != nil {
			return err
		}
		if stepped && !ranged {
			return fmt.Errorf("has a step without a range; write %s-%d/%s", from, f.most, step)
		}
		if !ranged {
			continue
		}
		last, err := f.value(to)
		if err != nil {
			return err
		}
		if last < first {
			return fmt.Errorf("ends before it begins; write the smaller value first")
		}
	}
	return nil
}

// value returns the number of a single value.
func (f cronField) value(text string) (int, error) {
	if at := slices.Index(f.words, text); at >= 0 {
		return f.least + at, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < f.least || n > f.most {
		return 0, fmt.Errorf("is none; write a number from %d to %d, a range such as %d-%d, or *", f.least, f.most, f.least, f.least+1)
	}
	return n, nil
}
