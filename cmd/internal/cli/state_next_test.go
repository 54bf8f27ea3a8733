package cli

import (
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/extract/formservice"
)

// TestStateOfFirstRun: while the first run of a definition with a glob is under way, state
// show tells that it is, and asks for the forms alone.
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
					if after := len(service.Log()); after != before+1 {
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
			if shown := <-looked; !strings.Contains(shown, "under way") {
				t.Errorf("it shows:\n%s", shown)
			}
		})
	}
}
