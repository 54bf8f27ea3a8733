package schemas_test

import (
	"fmt"

	"github.com/formetl/formetl/schemas"
)

func ExampleParseType() {
	t, err := schemas.ParseType("list<decimal(12,2)>")
	fmt.Println(t, t.Arrow(), err)
	_, err = schemas.ParseType("text")
	fmt.Println(err)
	// Output:
	// list<decimal(12,2)> list<element: decimal(12, 2), nullable> <nil>
	// type "text" is not known; write string, int64, float64, bool, date, timestamp, decimal(p,s) or list<T>
}

func ExampleSchema_Validate() {
	s := schemas.Schema{Columns: []schemas.Column{
		{Name: "id", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}},
		{Name: "ID", From: schemas.Source{Kind: schemas.FromItem, ID: "1"}, Type: schemas.Type{Kind: schemas.String}, OnError: "null"},
	}}
	fmt.Println(s.Validate())
	// Output:
	// columns[1].name: the name "ID" differs from "id" (column 1) only in case; DuckDB and most warehouses take them for one
	// columns[1].on_error: "null" is not a rule (rules: fail, reject, set_null)
}

func ExampleUniquer() {
	var u schemas.Uniquer
	for _, label := range []string{"Full name", "Full Name?", "Größe", "2nd choice"} {
		fmt.Println(u.Name(schemas.Snake(label)))
	}
	// Output:
	// full_name
	// full_name_2
	// grosse
	// _2nd_choice
}

func ExampleLate() {
	matrix := schemas.Source{Kind: schemas.FromItem, ID: "353-0-0"}
	fmt.Println(schemas.Late(matrix, schemas.Type{Kind: schemas.String}, "How was it?", false).Name)
	fmt.Println(schemas.Late(matrix, schemas.Type{Kind: schemas.String}, "How was it?", true).Name)
	// Output:
	// item_353_0_0
	// how_was_it_353_0_0
}
