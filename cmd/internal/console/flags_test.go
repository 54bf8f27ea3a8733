package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// environment is one of these variables.
func environment(variables map[string]string) Environment {
	return func(name string) (string, bool) { v, ok := variables[name]; return v, ok }
}

// TestSource holds that flags come before the environment, and that each wrong
// flag is named.
func TestSource(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := environment(map[string]string{"FORMETL_BASE_URL": "https://env.example.com", "FORMETL_ACCOUNT": "env", "FORMETL_TIMEZONE": "Europe/Berlin", "FORMETL_API_KEY": "k"})
	for _, c := range []struct {
		args, baseURL, account, zone, problem string
		env                                   Environment
	}{
		{"", "https://env.example.com", "env", "Europe/Berlin", "", env},
		{"--base-url https://a.example.com --account a --timezone UTC", "https://a.example.com", "a", "UTC", "", env},
		{"--api-key-file " + key, "https://env.example.com", "env", "Europe/Berlin", "", env},
		{"", "", "", "", "no service", environment(nil)},
		{"--base-url https://a.example.com", "", "", "", "no account", environment(nil)},
		{"--base-url https://a.example.com --account a", "", "", "", "no API key", environment(nil)},
		{"--base-url http://a.example.com", "", "", "", "--allow-http", env},
		{"--timezone Mars/Olympus", "", "", "", "--timezone", env},
		{"--api-key-file /none", "", "", "", "--api-key-file", env},
		{"--concurrency 0", "", "", "", "--concurrency", env},
		{"--retries -1", "", "", "", "--retries", env},
		{"--requests-per-minute -1", "", "", "", "--requests-per-minute", env},
		{"--max-requests -1", "", "", "", "--max-requests", env},
		{"--timeout 0s", "", "", "", "--timeout", env},
	} {
		var s ServiceFlags
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		s.Register(set)
		s.RegisterMaxRequests(set)
		if err := set.Parse(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		source, err := s.Source(c.env)
		if c.problem != "" {
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%q: %v, want %q", c.args, err, c.problem)
			}
			continue
		}
		if err != nil || source.BaseURL != c.baseURL || source.Account != c.account || source.Zone.String() != c.zone || source.Key.IsZero() {
			t.Errorf("%q: %v, %s %s %s", c.args, err, source.BaseURL, source.Account, source.Zone)
		}
		if s.NamesNoZone(c.env) || !s.NamesNoZone(environment(nil)) != (c.zone == "UTC") {
			t.Errorf("%q: the account's zone is named", c.args)
		}
	}
}

func TestRange(t *testing.T) {
	for _, c := range []struct{ from, to, problem string }{
		{"", "", ""},
		{"2026-01-01", "2026-02-01", ""},
		{"2026-01-01", "2026-01-01", "--to is exclusive"},
		{"yesterday", "", "--from"},
		{"", "tomorrow", "--to"},
	} {
		o, err := (&RangeFlags{from: c.from, to: c.to}).Options()
		if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
		}
		if err == nil && (o.From.IsZero() != (c.from == "") || o.To.IsZero() != (c.to == "")) {
			t.Errorf("%s to %s: %s to %s", c.from, c.to, o.From, o.To)
		}
	}
}

func TestCheckForm(t *testing.T) {
	for form, problem := range map[string]string{"form1": "", "": "no form", "..": "is no form", "a/b": "no slash", `a\b`: "no slash"} {
		if err := CheckForm(form); (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %v", form, err)
		}
	}
}
