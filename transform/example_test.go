package transform_test

import (
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/extract/page"
	v1 "github.com/formetl/formetl/extract/v1"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

const body = `<fs_response status="success">
<headings><heading for="1">Full name</heading><heading for="2">Colours</heading></headings>
<results>
  <result id="11"><metas><meta id="date_finish">2026-07-01 09:30:00</meta></metas>
    <items><item id="1" index="1"><value>Ada</value></item><item id="2" index="2"><value>red</value><value>blue</value></item></items></result>
  <result id="12"><items><item id="1" index="1"><value>Grace</value></item></items></result>
</results></fs_response>`

// A page becomes a batch by the schema that its own headings and values give.
func ExampleFlattener() {
	p, err := v1.DecodePage([]byte(body), "text/xml")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Release()

	schema := transform.Infer("feedback", []*page.Page{p}, true)
	f, err := transform.NewFlattener(schema, transform.Options{
		Zone: time.FixedZone("", -5*60*60),
		Emit: func(b arrow.RecordBatch) error {
			for i, field := range b.Schema().Fields() {
				fmt.Println(field.Name, b.Column(i))
			}
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Release()
	if err := f.Append(p); err != nil {
		fmt.Println(err)
	}
	if err := f.Flush(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// result_id [11 12]
	// date_finish [1782916200000000 (null)]
	// full_name ["Ada" "Grace"]
	// colours [["red" "blue"] (null)]
}

// A value that does not fit is told apart from the rows, never changed.
func ExampleOptions_reject() {
	p, err := v1.DecodePage([]byte(body), "text/xml")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Release()

	f, err := transform.NewFlattener(&schemas.Schema{
		Unknown: schemas.UnknownIgnore,
		Columns: []schemas.Column{
			{Name: "id", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}},
			{Name: "name", From: schemas.Source{Kind: schemas.FromItem, ID: "1"}, Type: schemas.Type{Kind: schemas.Date}},
		},
	}, transform.Options{
		Zone:   time.UTC,
		Emit:   func(arrow.RecordBatch) error { return nil },
		Reject: func(r transform.Reject) error { fmt.Println(r.ResultID, r.Column, r.Raw, "-", r.Reason); return nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Release()
	if err := f.Append(p); err != nil {
		fmt.Println(err)
	}
	fmt.Println(f.Stats().Rejected, "rejected")
	// Output:
	// 11 name Ada - not a date YYYY-MM-DD
	// 12 name Grace - not a date YYYY-MM-DD
	// 2 rejected
}
