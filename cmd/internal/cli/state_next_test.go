package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/cmd/internal/states"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/maintain"
)

// TestStateAfterAKill kills a run, looks what the next one will do, and holds that the
// next one does it.
func TestStateAfterAKill(t *testing.T) {
	dir := t.TempDir()
	var hook atomic.Pointer[func(formservice.Request)]
	service := &formservice.Server{Key: testKey, Forms: []*formservice.Form{keptForm(t, 14)}, Before: func(r formservice.Request) {
		if before := hook.Load(); before != nil {
			(*before)(r)
		}
	}}
	server := httptest.NewServer(service)
	defer server.Close()
	// Where columns are declared, no page waits for those of a sample.
	args := keptCommand(t, dir, server.URL, "run", ".csv", "version: 1\nunknown: ignore\ncolumns:\n  - {name: id, from: result_id, type: int64}\n")
	look := func(flags ...string) string {
		t.Helper()
		p := command(t, dir, testKey, append([]string{"state", "show", args[1]}, flags...)...)
		if code := p.code(t, p.Run()); code != exit.OK {
			t.Fatalf("state show ended with %d:\n%s", code, &p.stderr)
		}
		return p.stdout.String()
	}
	const anew = "\n  the next run begins anew\n"
	if text := look(); !strings.Contains(text, anew) {
		t.Errorf("before the first run:\n%s", text)
	}
	p := command(t, dir, testKey, args...)
	killWhen(t, service, &hook, 10, filepath.Join(dir, "state"), p)
	server.CloseClientConnections()
	var state states.JSON
	if err := json.Unmarshal([]byte(look("--json")), &state); err != nil || len(state.Forms) != 1 || state.Forms[0].NextRun.Resumes == nil {
		t.Fatalf("%v: %+v", err, state)
	}
	will := state.Forms[0].NextRun.Resumes
	if text := look(); !strings.Contains(text, fmt.Sprintf("\n  the next run resumes from run %s and takes over %d results, read ", will.RunID, will.Results)) || will.Results != 100 {
		t.Errorf("told\n%s", text)
	}
	p = command(t, dir, testKey, append(args, "--log-format", "json")...)
	if code := p.code(t, p.Run()); code != exit.OK {
		t.Fatalf("then ended with %d:\n%s", code, &p.stderr)
	}
	if log := p.stderr.String(); !strings.Contains(log, fmt.Sprintf(`"earlier_run":%q`, will.RunID)) || !strings.Contains(log, fmt.Sprintf(`"results":%d,`, will.Results)) {
		t.Errorf("told that %d results of run %s are taken over:\n%s", will.Results, will.RunID, log)
	}
	if text := look(); !strings.Contains(text, anew) {
		t.Errorf("after the run:\n%s", text)
	}
}

// TestStateOfFirstRun: while the first run of a definition with a glob is under way, state
// show names its forms, without a request.
func TestStateOfFirstRun(t *testing.T) {
	for name, path := range map[string]string{"file": "out/{form}.csv", "dataset": "lake/{form}/"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var file string
			looked := make(chan string, 1)
			show := sync.OnceFunc(func() {
				p := command(t, dir, testKey, "state", "show", file)
				if code := p.code(t, p.Run()); code != exit.OK {
					t.Errorf("state show ended with %d:\n%s", code, &p.stderr)
				}
				looked <- p.stdout.String()
			})
			service := &formservice.Server{Key: testKey, Forms: []*formservice.Form{keptForm(t, 50)}}
			service.Before = func(r formservice.Request) {
				if strings.Contains(r.Query, "fs_min_id=101") { // before there is a checkpoint
					before := len(service.Log())
					show()
					if after := len(service.Log()); after != before {
						t.Errorf("%d requests were sent meanwhile", after-before)
					}
				}
			}
			server := httptest.NewUnstartedServer(service) // it starts when what it calls knows the file
			defer server.Close()
			file = pipelineFile(t, dir, "first", "http://"+server.Listener.Addr().String(), "concurrency: 1", "forms: [\"*\"]\nload: [{path: \""+path+"\", format: csv}]")
			server.Start()
			p := command(t, dir, testKey, "run", file)
			if code := p.code(t, p.Run()); code != exit.OK {
				t.Fatalf("the run ended with %d:\n%s", code, &p.stderr)
			}
			server.Close()
			close(looked)
			if shown := <-looked; !strings.Contains(shown, "a run is under way") || strings.Contains(shown, "no form has anything") {
				t.Errorf("it shows:\n%s", shown)
			}
		})
	}
}

// TestNextRunTells shows each thing that the next run may do, in words.
func TestNextRunTells(t *testing.T) {
	now := time.Date(2026, 3, 10, 18, 0, 0, 0, time.UTC)
	next := wallAt("2026-03-07 00:00:00")
	for _, c := range []struct {
		form maintain.FormState
		want string
	}{
		{maintain.FormState{}, "  the next run begins anew\n"},
		{maintain.FormState{Next: &next}, ""},
		{
			maintain.FormState{Will: maintain.NextRun{UnderWay: &load.Holder{}}},
			"  a run is under way; another one that begins now ends at once with 75\n",
		},
		{
			maintain.FormState{Next: &next, Will: maintain.NextRun{Finishes: []maintain.Unfinished{{Path: "/a/", RunID: "r1"}}, Discards: "r2", Why: "it is too old"}},
			"  the next run first finishes the commit of run r1 at /a/\n  the next run begins anew and discards what run r2 had read: it is too old\n",
		},
		{
			maintain.FormState{Will: maintain.NextRun{Resumes: &maintain.Resumption{RunID: "r1", Results: 1200, Oldest: now.Add(-time.Hour), Newest: now.Add(-time.Minute)}}},
			"  the next run resumes from run r1 and takes over 1,200 results, read from 2026-03-10T17:00:00Z (60 minutes ago) to 2026-03-10T17:59:00Z (1 minute ago)\n",
		},
	} {
		var out bytes.Buffer
		states.WriteNextRun(&out, &maintain.StateReport{Now: now}, &c.form)
		if out.String() != c.want {
			t.Errorf("got\n%swant\n%s", &out, c.want)
		}
	}
}
