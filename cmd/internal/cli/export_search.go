package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/formetl/formetl/extract"
)

// searchFlags say which results export reads.
type searchFlags struct {
	where []string
	match string
}

func (f *searchFlags) register(set *pflag.FlagSet) {
	set.StringArrayVar(&f.where, "where", nil, "COLUMN:OP[=TERM], OP one of equals contains begins ends empty not_empty; repeatable")
	set.StringVar(&f.match, "match", "and", "how several --where combine: and, or")
}

// criteria are the search that the flags ask the service for.
func (f *searchFlags) criteria() (extract.Search, error) {
	s := extract.Search{Any: f.match == "or"}
	if f.match != "and" && f.match != "or" {
		return s, fmt.Errorf("--match %q: give and or or", f.match)
	}
	type pair struct {
		column string
		op     extract.Operator
	}
	seen := map[pair]bool{}
	for _, w := range f.where {
		c, err := criterion(w)
		if err != nil {
			return s, err
		}
		if seen[pair{c.Column, c.Operator}] {
			return s, fmt.Errorf("--where %s: the service takes one %s for column %s (specification, section 4.5, rule 2)", w, c.Operator, c.Column)
		}
		seen[pair{c.Column, c.Operator}] = true
		s.Where = append(s.Where, c)
	}
	return s, nil
}

// criterion reads one --where.
func criterion(text string) (extract.Criterion, error) {
	head, term, hasTerm := strings.Cut(text, "=")
	column, op, ok := strings.Cut(head, ":")
	c := extract.Criterion{Column: column, Operator: extract.Operator(op), Term: term}
	if !ok || column == "" {
		return c, fmt.Errorf("--where %q: write COLUMN:OP=TERM, for example result_status:equals=Complete", text)
	}
	switch c.Operator {
	case extract.OpEmpty, extract.OpNotEmpty:
		if hasTerm {
			return c, fmt.Errorf("--where %q: %s takes no term", text, op)
		}
	case extract.OpEquals, extract.OpContains, extract.OpBegins, extract.OpEnds:
		if !hasTerm {
			return c, fmt.Errorf("--where %q: %s needs a term: %s=TERM", text, op, head)
		}
	default:
		return c, fmt.Errorf("--where %q: the operator %q is none of equals contains begins ends empty not_empty", text, op)
	}
	return c, nil
}
