package upkeep_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/pipelines/upkeep"
)

// states gives the state of each check, by its name; of several the worst.
func states(r *upkeep.Checklist) map[string]upkeep.CheckState {
	rank := map[upkeep.CheckState]int{upkeep.OK: 1, upkeep.NotChecked: 2, upkeep.Warning: 3, upkeep.Failed: 4}
	all := map[string]upkeep.CheckState{}
	for _, c := range r.Checks {
		if rank[c.State] > rank[all[c.Name]] {
			all[c.Name] = c.State
		}
	}
	return all
}

// doctorWorld is a definition with one dataset, whose destination may be broken.
type doctorWorld struct {
	service *formservice.Server
	def     *definition.Definition
	o       pipelines.Options
	dir     string
}

// form is a form with a result of a minute ago.
func form(name string) *formservice.Form {
	zone, _ := time.LoadLocation("America/Chicago")
	at := time.Now().In(zone).Add(-time.Minute).Format(formservice.WallTime)
	result := pipelinestest.Result(1, at, "x")
	result.Metas = append(result.Metas, formservice.Meta{ID: "date_update", Value: at})
	return formservice.NewForm(name, []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Name"}}, []formservice.Result{result})
}

func newDoctorWorld(t *testing.T, dest load.Destination, forms ...*formservice.Form) *doctorWorld {
	t.Helper()
	service, source := pipelinestest.Serve(t, forms...)
	source.Requests.Retries = 0
	dir := t.TempDir()
	w := &doctorWorld{service, pipelinestest.Definition(dir, source, definition.Output{Path: "lake/{form}/", Format: "ndjson"}), pipelinestest.Options(), dir}
	if dest != nil {
		w.o.BuiltIn.Open = func(context.Context, string, definition.Output) (load.Destination, error) { return dest, nil }
	}
	return w
}

func (w *doctorWorld) examine(t *testing.T) *upkeep.Checklist {
	t.Helper()
	r, err := upkeep.Examine(t.Context(), w.def, w.o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// broken is a destination whose methods can be made to fail.
type broken struct {
	*local.Destination
	put   func(name, version string) error // before the write
	get   func(data []byte) ([]byte, error)
	list  func() error
	drop  func() error
	stage func() error
}

// folder is a destination in a folder of its own.
func folder(t *testing.T) *local.Destination {
	t.Helper()
	d, err := local.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// left lists what lies in a destination's folder.
func left(t *testing.T, d *local.Destination) []os.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(d.String())
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func (b *broken) Put(ctx context.Context, name string, data []byte, version string) error {
	if b.put != nil {
		if err := b.put(name, version); err != nil {
			return err
		}
	}
	return b.Destination.Put(ctx, name, data, version)
}

func (b *broken) Get(ctx context.Context, name string) ([]byte, string, error) {
	data, version, err := b.Destination.Get(ctx, name)
	if err == nil && b.get != nil {
		data, err = b.get(data)
	}
	return data, version, err
}

func (b *broken) List(ctx context.Context, prefix string) ([]load.Object, error) {
	if b.list != nil {
		return nil, b.list()
	}
	return b.Destination.List(ctx, prefix)
}

func (b *broken) Delete(ctx context.Context, name string) error {
	if b.drop != nil {
		return b.drop()
	}
	return b.Destination.Delete(ctx, name)
}

func (b *broken) Stage(ctx context.Context, run, name string) (load.Upload, error) {
	if b.stage != nil {
		return nil, b.stage()
	}
	return b.Destination.Stage(ctx, run, name)
}

var errDenied = &load.Error{Kind: load.ErrFailed, Op: "use", Path: "x", Remedy: "allow it", Err: errors.New("denied")}

func denied() error { return errDenied }

// TestRights: each right that is missing is found alone, and nothing is left.
func TestRights(t *testing.T) {
	for _, c := range []struct {
		name    string
		broken  broken
		want    map[string]upkeep.CheckState // besides ok
		leaving bool
	}{
		{"all", broken{}, nil, false},
		{"no list", broken{list: denied}, map[string]upkeep.CheckState{"lists": upkeep.Failed, "runs": upkeep.NotChecked}, false},
		{"listings that lag", broken{list: func() error { return nil }}, map[string]upkeep.CheckState{"lists": upkeep.Failed}, false},
		{"no write", broken{put: func(string, string) error { return errDenied }}, map[string]upkeep.CheckState{
			"writes": upkeep.Failed, "reads": upkeep.NotChecked, "conditional writes": upkeep.NotChecked, "removes": upkeep.NotChecked,
		}, false},
		{"no read", broken{get: func([]byte) ([]byte, error) { return nil, errDenied }}, map[string]upkeep.CheckState{"reads": upkeep.Failed, "conditional writes": upkeep.NotChecked}, false},
		{"other bytes", broken{get: func(data []byte) ([]byte, error) { return bytes.ToUpper(data), nil }}, map[string]upkeep.CheckState{"reads": upkeep.Failed}, false},
		{"no remove", broken{drop: denied}, map[string]upkeep.CheckState{
			"removes": upkeep.Failed, "writes": upkeep.NotChecked, "reads": upkeep.NotChecked, "conditional writes": upkeep.NotChecked, "stages": upkeep.NotChecked,
		}, false},
		{"objects that stay", broken{drop: func() error { return nil }}, map[string]upkeep.CheckState{"removes": upkeep.Failed}, true},
		{"no stage", broken{stage: denied}, map[string]upkeep.CheckState{"stages": upkeep.Failed}, false},
		{"no conditional write", broken{put: func(_, version string) error {
			if version != load.AnyVersion {
				return errDenied
			}
			return nil
		}}, map[string]upkeep.CheckState{"conditional writes": upkeep.Failed}, false},
		{"away", broken{list: func() error { return &load.Error{Kind: load.ErrAway, Op: "list", Path: "x", Err: errors.New("away")} }}, map[string]upkeep.CheckState{
			"place": upkeep.Failed, "lists": upkeep.NotChecked, "writes": upkeep.NotChecked, "reads": upkeep.NotChecked,
			"conditional writes": upkeep.NotChecked, "stages": upkeep.NotChecked, "removes": upkeep.NotChecked,
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.broken.Destination = folder(t)
			w := newDoctorWorld(t, &c.broken, form("form1"))
			got := states(w.examine(t))
			for name, state := range got {
				want, other := c.want[name]
				if !other {
					want = upkeep.OK
				}
				if state != want {
					t.Errorf("%s is %s, want %s", name, state, want)
				}
			}
			for name := range c.want {
				if got[name] == "" {
					t.Errorf("%s is missing", name)
				}
			}
			staged, err := c.broken.Staged(t.Context())
			if found := left(t, c.broken.Destination); (len(found) > 0) != c.leaving || len(staged) > 0 || err != nil {
				t.Errorf("%v and %v are left, %v", found, staged, err)
			}
		})
	}
}

// ignorant is a destination that ignores conditions, and does not know it.
type ignorant struct{ *local.Destination }

func (d ignorant) Put(ctx context.Context, name string, data []byte, _ string) error {
	return d.Destination.Put(ctx, name, data, load.AnyVersion)
}

// TestConditionsThatAreIgnored: nothing keeps two runs apart there.
func TestConditionsThatAreIgnored(t *testing.T) {
	dest := ignorant{folder(t)}
	r := newDoctorWorld(t, dest, form("form1")).examine(t)
	if got := states(r)["conditional writes"]; got != upkeep.Failed || r.Err() == nil {
		t.Errorf("it is %s: %v", got, r.Err())
	}
	if found := left(t, dest.Destination); len(found) > 0 {
		t.Errorf("%v are left", found)
	}
}

// TestStop while probes are written: they are removed all the same.
func TestStop(t *testing.T) {
	stop := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	dest := &broken{Destination: folder(t)}
	dest.get = func(data []byte) ([]byte, error) {
		cancel(stop)
		return data, nil
	}
	w := newDoctorWorld(t, dest, form("form1"))
	_, err := upkeep.Examine(ctx, w.def, w.o, nil)
	if !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	if found := left(t, dest.Destination); len(found) > 0 {
		t.Errorf("%v are left", found)
	}
}

// TestNothingStays of the folders that are made on a disk.
func TestNothingStays(t *testing.T) {
	w := newDoctorWorld(t, nil, form("form1"))
	w.def.Outputs = append(w.def.Outputs, definition.Output{Path: filepath.Join(w.dir, "lake", "deep", "{form}.csv"), Format: "csv"})
	if r := w.examine(t); r.Err() != nil {
		t.Errorf("%v: %+v", r.Err(), r.Checks)
	}
	if entries, err := os.ReadDir(w.dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestRequests: as few are sent as are needed, also where forms are missing and the service
// sorts by nothing.
func TestRequests(t *testing.T) {
	dateless := func(name string) *formservice.Form {
		return formservice.NewForm(name, nil, []formservice.Result{pipelinestest.Result(1, "", "x")})
	}
	for _, c := range []struct {
		name  string
		forms []string // of the definition
		there []*formservice.Form
		most  int
		zone  upkeep.CheckState
	}{
		{"one form", []string{"form1"}, []*formservice.Form{form("form1")}, 5, upkeep.OK},
		{"all forms", []string{"*"}, []*formservice.Form{form("a"), form("b"), form("c"), form("d")}, 5, upkeep.OK},
		{"no dates", []string{"*"}, []*formservice.Form{dateless("a"), dateless("b"), dateless("c"), form("d")}, 8, upkeep.NotChecked},
		{"missing forms", []string{"u", "v", "w", "x", "y", "a"}, []*formservice.Form{dateless("a")}, 6, upkeep.NotChecked},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newDoctorWorld(t, nil, c.there...)
			w.def.Forms = c.forms
			r := w.examine(t)
			if n := len(w.service.Log()); n > c.most || int64(n) != r.Requests || n > upkeep.MostRequests {
				t.Errorf("%d requests, told are %d", n, r.Requests)
			}
			if got := states(r)["zone"]; got != c.zone {
				t.Errorf("the zone is %s", got)
			}
		})
	}
}

// TestBudgetInBetween: where the budget ends between two requests, the next is not sent.
func TestBudgetInBetween(t *testing.T) {
	w := newDoctorWorld(t, nil, form("form1"))
	w.def.Source.Requests.PerMinute = 1
	start := time.Now()
	r := w.examine(t)
	got := states(r)
	if got["key"] != upkeep.OK || got["zone"] != upkeep.NotChecked || len(w.service.Log()) != 1 || time.Since(start) > 20*time.Second {
		t.Errorf("%v after %d requests", got, len(w.service.Log()))
	}
}

// TestClockOfAnswers: the service's clock is that of its answers, and an answer from a cache
// tells none.
func TestClockOfAnswers(t *testing.T) {
	for _, c := range []struct {
		name  string
		ahead time.Duration // of our clock
		age   string
		want  map[string]upkeep.CheckState
	}{
		{"right", 0, "", map[string]upkeep.CheckState{"clock": upkeep.OK, "zone": upkeep.OK}},
		{"ahead", 3 * time.Hour, "", map[string]upkeep.CheckState{"clock": upkeep.Failed, "zone": upkeep.NotChecked}},
		{"from a cache", 0, "7200", map[string]upkeep.CheckState{"clock": upkeep.NotChecked, "zone": upkeep.OK}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newDoctorWorld(t, nil, form("form1"))
			w.o.Client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
				answer, err := http.DefaultTransport.RoundTrip(r)
				if err == nil {
					answer.Header.Set("Date", time.Now().Add(-c.ahead).UTC().Format(http.TimeFormat))
					answer.Header.Set("Age", c.age)
				}
				return answer, err
			})
			got := states(w.examine(t))
			for name, want := range c.want {
				if got[name] != want {
					t.Errorf("%s is %s, want %s", name, got[name], want)
				}
			}
		})
	}
}

// TestSortRefused: the newest results by their ids are looked at then.
func TestSortRefused(t *testing.T) {
	w := newDoctorWorld(t, nil, form("form1"))
	var refused atomic.Int64
	w.o.Client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		if strings.Contains(r.URL.RawQuery, "fs_sort=") {
			refused.Add(1)
			q := r.URL.Query()
			q.Set("fs_sort", "no_such_column")
			r = r.Clone(r.Context())
			r.URL.RawQuery = q.Encode()
		}
		return http.DefaultTransport.RoundTrip(r)
	})
	r := w.examine(t)
	if got := states(r)["zone"]; got != upkeep.OK || refused.Load() != 1 || r.Requests != 5 {
		t.Errorf("the zone is %s after %d requests, %d of them sorted", got, r.Requests, refused.Load())
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestKeyStaysSecret: no check shows it, whatever the service answers.
func TestKeyStaysSecret(t *testing.T) {
	w := newDoctorWorld(t, nil, form("form1"))
	w.def.Source.Key = transport.NewSecret("a-key-that-is-refused")
	r := w.examine(t)
	if states(r)["key"] != upkeep.Failed {
		t.Errorf("%+v", r.Checks)
	}
	for _, c := range r.Checks {
		if strings.Contains(c.Detail+c.Cure, "a-key-that-is-refused") {
			t.Errorf("%s shows the key", c.Name)
		}
	}
}
