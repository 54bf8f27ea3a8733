package checkpoint

import (
	"fmt"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
)

// EncodeColumns describes inferred columns for a manifest or a checkpoint. Such columns have
// no rules for personal data or errors.
func EncodeColumns(columns []schemas.Column) []load.Column {
	list := make([]load.Column, 0, len(columns))
	for _, c := range columns {
		list = append(list, load.Column{Name: c.Name, Type: c.Type.String(), From: c.From.String(), Label: c.Label})
	}
	return list
}

// DecodeColumns reads inferred columns of a manifest or a checkpoint. It
// returns an error if no schema may have such columns.
func DecodeColumns(list []load.Column) ([]schemas.Column, error) {
	if len(list) == 0 {
		return nil, nil
	}
	columns := make([]schemas.Column, 0, len(list))
	for i, c := range list {
		t, err := schemas.ParseType(c.Type)
		if err != nil {
			return nil, fmt.Errorf("column %d: %w", i+1, err)
		}
		from, err := schemas.ParseSource(c.From)
		if err != nil {
			return nil, fmt.Errorf("column %d: %w", i+1, err)
		}
		columns = append(columns, schemas.Column{Name: c.Name, From: from, Type: t, Label: c.Label, Inferred: true})
	}
	if err := (&schemas.Schema{Columns: columns}).Validate(); err != nil {
		return nil, err
	}
	return columns, nil
}
