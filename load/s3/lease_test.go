package s3

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/lease"
)

// A holder on this host whose process is gone is replaced at once; against
// real servers.
func TestLeaseOfDeadProcess(t *testing.T) {
	dead := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	dead.Env = append(os.Environ(), "FORMETL_TEST_S3=off")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	eachServer(t, func(t *testing.T, s server) {
		d := s.open(t, "dead")
		write := func(p lease.Process) {
			o := leaseObject{d, load.ControlFolder + "/" + load.LeaseName}
			if _, err := o.Write(t.Context(), lease.Record{Token: "T", Process: p, Holder: load.Holder{RunID: "old"}}, load.AnyVersion); err != nil {
				t.Fatal(err)
			}
		}
		gone := lease.ThisProcess()
		gone.PID, gone.Start = dead.Process.Pid, "1"
		alive := lease.ThisProcess()
		elsewhere := gone
		elsewhere.Host += "x"
		for _, p := range []lease.Process{alive, elsewhere, {}} {
			write(p)
			var held *load.HeldError
			if _, err := d.Acquire(t.Context(), "", load.Holder{RunID: "new"}); !errors.As(err, &held) || held.RunID != "old" {
				t.Errorf("%+v: got %v", p, err)
			}
		}
		write(gone)
		l, err := d.Acquire(t.Context(), "", load.Holder{RunID: "new"})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := names(t, d); len(left) != 0 {
			t.Errorf("left %v", left)
		}
	})
}

// The store's own times tell a lease's age, whatever this machine's clock
// says; a record that cannot be read is held until then.
func TestLeaseAge(t *testing.T) {
	f, d := fakeDestination(t, nil)
	if err := d.Put(t.Context(), load.ControlFolder+"/"+load.LeaseName, []byte("damaged"), load.AnyVersion); err != nil {
		t.Fatal(err)
	}
	written := f.now
	f.refuse = func(r *http.Request) (int, string, http.Header) {
		if r.Header.Get("If-None-Match") != "" {
			return http.StatusPreconditionFailed, "PreconditionFailed", nil
		}
		return 0, "", nil
	}
	var held *load.HeldError
	f.now = written.Add(59 * time.Second)
	if _, err := d.Acquire(t.Context(), "", load.Holder{}); !errors.As(err, &held) || held.RunID != "" {
		t.Errorf("after 59 s: %v", err)
	}
	f.now = written.Add(62 * time.Second)
	l, err := d.Acquire(t.Context(), "", load.Holder{RunID: "new"})
	if err != nil {
		t.Fatalf("after 62 s: %v", err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := d.Acquire(t.Context(), "../x", load.Holder{}); !errors.Is(err, load.ErrConfig) {
		t.Errorf("a scope that leaves gives %v", err)
	}
}
