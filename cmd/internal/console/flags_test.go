package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/formetl/formetl/extract"
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
		s.Register(set, "")
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
	zone := time.FixedZone("", 3600)
	now := time.Date(2026, 5, 17, 23, 30, 0, 0, time.UTC) // half past midnight on Monday, May 18th
	for args, want := range map[string]string{
		"":                                "",
		"--from 2026-01-01":               "2026-01-01 00:00:00/..",
		"--to 2026-02-01":                 "../2026-02-01 00:00:00",
		"--from -30d":                     "2026-04-18 00:00:00/..",
		"--from -12h --to -90m":           "2026-05-17 12:30:00/2026-05-17 23:00:00",
		"--from 2026-01-01 --through -1d": "2026-01-01 00:00:00/2026-05-18 00:00:00",
		"--through 2026-10-31":            "../2026-11-01 00:00:00",
		"--last month":                    "2026-04-01 00:00:00/2026-05-01 00:00:00",
		"--this year":                     "2026-01-01 00:00:00/..",
		"--from yesterday":                "--from: ",
		"--to=":                           "--to: the value is empty",
		"--last 7":                        "--last: \"7\" is not a length of time; write day, month, quarter, week, year, or a length such as 7d, 12h or 3mo",
		"--last week --this week":         "--last and --this both set the range",
		"--from -7d --last week":          "--from and --last both set the range",
		"--to -1d --through -1d":          "--to and --through both set the range",
	} {
		var r RangeFlags
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		r.Register(set, "")
		if err := set.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		o, err := r.Options()
		got := ""
		if w := o.Range.In(zone, now); w != (extract.Window{}) {
			got = w.String()
		}
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

func TestCheckForm(t *testing.T) {
	for form, problem := range map[string]string{"form1": "", "": "no form", "..": "is not the name of a form", "a/b": "no slash", `a\b`: "no slash"} {
		if err := CheckForm(form); (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %v", form, err)
		}
	}
}
