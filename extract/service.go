package extract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// PageSize is the most results that one request of API v1 (XML) brings
// (specification, section 8). A Range without a PageSize assumes it too.
const PageSize = 100

// Service holds the requests that plans and readers send to the service.
type Service interface {
	// Results asks for one page of results. The caller releases the page.
	Results(ctx context.Context, form string, q ResultsQuery) (*page.Page, error)
	// Count asks how many results match. The error wraps ErrNoCount if the service's answers do
	// not tell the number.
	Count(ctx context.Context, form string, q CountQuery) (int64, error)
	// PageSize is the most results that one request brings.
	PageSize() int
}

// Client speaks one generation of the service for one account. It is safe for
// concurrent use.
type Client interface {
	Service
	Forms(ctx context.Context) ([]Form, error)
	Status(ctx context.Context, form string) (Status, error)
	// Publish asks for a form's links; secure asks for https ones.
	Publish(ctx context.Context, form string, secure bool) (Publish, error)
	// Copy copies a form and describes the new one. The error is a
	// *transport.Error if the copy may have been made.
	Copy(ctx context.Context, form string, to CopyTarget) (Form, error)

	// File asks for an uploaded file, see transport.Sender.
	File(ctx context.Context, call transport.FileCall) (transport.File, error)

	Requests() transport.Requests
	Outcomes() map[string]int64
	// Clocks returns the date that the service gave its last answer, and when that answer came by
	// our clock. Both are zero if answers carry no date.
	Clocks() (theirs, ours time.Time)

	// Fork returns a client that shares all but its Requests and Outcomes with the original.
	Fork() Client
	Reads(forms int)
	Close()
	// Generation names the interface of the service that the client speaks: v1 or v2.
	Generation() string
}

// ResultsQuery holds the parameters of Get Results (specification, section 4.5).
// The zero value asks for the first page of everything.
type ResultsQuery struct {
	Window       Window // fs_min_date and fs_max_date, always with a time part
	IDs          IDRange
	Limit        int    // fs_limit; 0, or at least the service's page size, means full pages
	Halved       bool   // the caller halves Limit if this query fails, see transport.TooHeavy
	Page         int    // fs_page; 0 means the first page
	Sort         string // fs_sort: a meta or item id; "" sorts by the result id
	Descending   bool   // fs_sort_direction
	Search       Search
	View         string // fs_view
	Headings     bool   // fs_include_headings
	CustomLabels string // fs_custom_labels
}

// Direction returns Descending as the service spells it.
func (q ResultsQuery) Direction() string {
	if q.Descending {
		return "desc"
	}
	return "asc"
}

// Asked names the view, the custom labels and the search of the query, "" if it has none of
// them. A service that does not know one of them refuses the request.
func (q ResultsQuery) Asked() string {
	var asked []string
	if q.View != "" {
		asked = append(asked, "view "+q.View)
	}
	if q.CustomLabels != "" {
		asked = append(asked, "custom labels "+q.CustomLabels)
	}
	for _, c := range q.Search.Where {
		asked = append(asked, strings.TrimSpace("search "+cmp.Or(c.Given, c.Column)+" "+string(c.Operator)+" "+c.Term))
	}
	return strings.Join(asked, ", ")
}

// IDRange bounds result ids at both ends, inclusively. Zero means no bound: ids
// of results begin at 1.
type IDRange struct{ Min, Max int64 }

// CountQuery holds the parameters of Get Results Count (specification, section 4.6).
type CountQuery struct {
	Window Window
	IDs    IDRange
}

// Form is one form of an account (specification, section 2, "Form").
type Form struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Directory   string `json:"directory"` // names the form in all requests but Get Forms
}

// Status says whether a form is open and how much of its quotas is used
// (specification, section 2, "Form status").
type Status struct {
	State        string  `json:"state"`         // open or closed
	LastModified string  `json:"last_modified"` // YYYY-MM-DD HH:MM:SS in the account's zone
	Limits       []Limit `json:"limits"`
}

// Limit is one quota of a form.
type Limit struct {
	Type  string `json:"type"` // items, results
	Used  int64  `json:"used"`
	Total int64  `json:"total"`
}

// Publish holds a form's publishing links and embed codes (specification,
// section 2, "Publish information").
type Publish struct {
	URLs  []PublishURL `json:"urls"`
	Codes []string     `json:"codes"` // HTML
}

// PublishURL is one publishing link.
type PublishURL struct {
	Type string `json:"type"` // normal, printer and others
	URL  string `json:"url"`
}

// CopyTarget says where a copy of a form goes. Empty fields mean the service's
// defaults: the current account and the original's name.
type CopyTarget struct {
	Account string // fs_destination_account
	Form    string // fs_destination_form
}

// Counting returns a service whose counts are those of the window alone, without the Overlap of
// API v2. Where the answers do not tell how many results there are (ErrNoCount), Count reads and
// counts them, which takes a request for each page.
func Counting(c Client) Service { return counting{c} }

type counting struct{ Client }

// Count asks the service for the count, and reads the results if its answer does not tell it.
func (c counting) Count(ctx context.Context, form string, q CountQuery) (int64, error) {
	n, err := c.Client.Count(ctx, form, q)
	if err == nil && n > 0 {
		var overlap int64
		overlap, err = Overlap(ctx, c.Client, form, q)
		n = max(0, n-overlap)
	}
	if !errors.Is(err, ErrNoCount) {
		return n, err
	}
	n = 0
	err = NewReader(c.Client, form, ResultsQuery{}).Each(ctx, q.Window, q.IDs, func(p *page.Page) error {
		n += int64(p.Len())
		return nil
	})
	return n, err
}

// Overlap counts the results that the service counts for a window though they lie in the second
// before it. Only API v2 counts such results (service-v2.md, section 9). Overlap asks for the count
// of that second alone, by one request.
func Overlap(ctx context.Context, c Client, form string, q CountQuery) (int64, error) {
	if c.Generation() != "v2" || q.Window.From.IsZero() {
		return 0, nil
	}
	q.Window.To = q.Window.From
	return c.Count(ctx, form, q)
}

// ErrNoCount means that the service does not say how many results match. Callers
// then read the results to find out. The error does not make the run fail.
var ErrNoCount = errors.New("the service does not say how many results there are")

// BreachError reports that the service breaks its specification: it ignores a part of the
// request, also when the request was sent once more.
type BreachError struct {
	Ignores string // "the ascending order of ids"
	Proof   string // the observation that proves the breach: "result 5 came after result 7"
}

// Error names what the service ignored, the proof, and the command that shows more.
func (e *BreachError) Error() string {
	return fmt.Sprintf("the service does not do what its specification says: it ignores %s, also when asked a second time (%s); nothing was written", e.Ignores, e.Proof)
}

// ExitCode is 65: another run would find the service in breach again.
func (e *BreachError) ExitCode() int { return 65 }

// Hint says what to send to those who run the service, see ShowDoctor.
func (e *BreachError) Hint() string { return ShowDoctor }

// ShowDoctor is the hint for an error where the service does not do what its specification says.
const ShowDoctor = "only those who run the service can mend it: send them this message and the table that `formetl doctor DEFINITION` prints, which contains no answers (`formetl init` writes a definition)"
