package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines"
)

// serviceFlags are those that stand for SERVICE in contract.md.
type serviceFlags struct {
	baseURL, account, timezone, keyFile string
	allowHTTP                           bool
	timeout                             time.Duration
	concurrency, perMinute, retries     int
	maxRequests                         int
}

func (s *serviceFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.baseURL, "base-url", "", "address of the service (or FORMETL_BASE_URL)")
	f.StringVar(&s.account, "account", "", "the account's URL extension (or FORMETL_ACCOUNT)")
	f.StringVar(&s.timezone, "timezone", "", "the account's zone, an IANA name (or FORMETL_TIMEZONE; default: this machine's)")
	f.StringVar(&s.keyFile, "api-key-file", "", "file that holds the API key (default: FORMETL_API_KEY)")
	f.BoolVar(&s.allowHTTP, "allow-http", false, "send the key over plain HTTP to hosts other than loopback")
	f.DurationVar(&s.timeout, "timeout", transport.DefaultTimeout, "longest wait for one answer")
	f.IntVar(&s.retries, "retries", transport.DefaultRetries, "how often a request that may succeed later is tried again")
	f.IntVar(&s.concurrency, "concurrency", transport.DefaultConcurrency, "most requests under way at once")
	f.IntVar(&s.perMinute, "requests-per-minute", 0, "most requests in any minute; 0 is no budget")
}

// source checks the flags, with the environment in place of those not given.
// Its errors are wrong usage.
func (s *serviceFlags) source(a *app) (pipelines.Source, error) {
	src := pipelines.Source{
		BaseURL: orEnv(a, s.baseURL, "FORMETL_BASE_URL"), Account: orEnv(a, s.account, "FORMETL_ACCOUNT"), AllowHTTP: s.allowHTTP,
		Requests: pipelines.Requests{Concurrency: s.concurrency, PerMinute: s.perMinute, Timeout: s.timeout, Retries: s.retries, MaxRequests: s.maxRequests},
	}
	switch {
	case src.BaseURL == "":
		return src, errors.New("no service: give --base-url, or set FORMETL_BASE_URL")
	case src.Account == "":
		return src, errors.New("no account: give --account, or set FORMETL_ACCOUNT")
	case s.concurrency < 1:
		return src, errors.New("--concurrency must be at least 1")
	case s.perMinute < 0:
		return src, errors.New("--requests-per-minute must not be negative")
	case s.retries < 0:
		return src, errors.New("--retries must not be negative")
	case s.maxRequests < 0:
		return src, errors.New("--max-requests must not be negative")
	case s.timeout <= 0:
		return src, errors.New("--timeout must be longer than nothing")
	}
	if _, err := transport.ParseBaseURL(src.BaseURL, src.AllowHTTP); err != nil {
		return src, fmt.Errorf("--base-url: %s", strings.ReplaceAll(err.Error(), "set allow_http: true", "give --allow-http"))
	}
	var err error
	if src.Key, err = a.apiKey(s.keyFile); err != nil {
		return src, err
	}
	a.usesKey(src.Key)
	if src.Zone, err = zone(orEnv(a, s.timezone, "FORMETL_TIMEZONE")); err != nil {
		return src, fmt.Errorf("--timezone: %w", err)
	}
	return src, nil
}

// stateFolder is where budgets and spool lie without a definition: the folder
// that a flag names, else a private one in the user's cache, or in the
// machine's temporary folder where there is no home.
func stateFolder(flag string) (string, error) {
	if flag != "" {
		return filepath.Abs(flag)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "formetl"), nil
}

func orEnv(a *app, flag, name string) string {
	if flag != "" {
		return flag
	}
	return a.env(name)
}

// apiKey reads the key from a file, or else from the environment.
func (a *app) apiKey(file string) (transport.Secret, error) {
	if file != "" {
		key, err := pipelines.KeyFromFile(file)
		if err != nil {
			return key, fmt.Errorf("--api-key-file: %w", err)
		}
		return key, nil
	}
	key := transport.NewSecret(a.env(pipelines.KeyVariable))
	if key.IsZero() {
		return key, fmt.Errorf("no API key: set %s, or give --api-key-file", pipelines.KeyVariable)
	}
	return key, nil
}

// zone is the named zone, or the machine's.
func zone(name string) (*time.Location, error) {
	if name == "" {
		name = machineZone()
	}
	return pipelines.LoadZone(name)
}

// machinesZone tells whether nobody named the account's zone.
func (s *serviceFlags) machinesZone(a *app) bool {
	return orEnv(a, s.timezone, "FORMETL_TIMEZONE") == ""
}

// machineZone is the IANA name of the machine's zone, UTC where it has none.
func machineZone() string {
	if name := time.Local.String(); name != "Local" && name != "" {
		return name
	}
	if target, err := filepath.EvalSymlinks("/etc/localtime"); err == nil {
		if _, name, ok := strings.Cut(target, "zoneinfo/"); ok {
			return name
		}
	}
	if data, err := os.ReadFile("/etc/timezone"); err == nil {
		if name := strings.TrimSpace(string(data)); name != "" {
			return name
		}
	}
	return "UTC"
}
