package console

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// Environment reads a variable of the environment; false if it is not set.
type Environment func(name string) (string, bool)

// ServiceFlags are the flags that name a service, SERVICE in contract.md.
type ServiceFlags struct {
	KeyFile  string
	source   definition.Source
	api      string
	timezone string
	given    *pflag.FlagSet
}

// Register adds the flags that name a service. key is "the definition's, or " for a command that may
// take the service from a definition, which then has the key.
func (s *ServiceFlags) Register(f *pflag.FlagSet, key string) {
	s.given = f
	f.StringVar(&s.source.BaseURL, "base-url", "", "address of the service (or FORMETL_BASE_URL)")
	f.StringVar(&s.api, "api", "", "which API of the service to ask: v1, v2, or auto: v2 if the service has it (or FORMETL_API; default auto)")
	f.StringVar(&s.source.Account, "account", "", "name of the account, as in the addresses of its forms (or FORMETL_ACCOUNT)")
	f.StringVar(&s.timezone, "timezone", "", "time zone of the account, such as America/Chicago (or FORMETL_TIMEZONE; default: this machine's)")
	f.StringVar(&s.KeyFile, "api-key-file", "", "file that contains the API key (default: "+key+"the variable FORMETL_API_KEY)")
	f.BoolVar(&s.source.AllowHTTP, "allow-http", false, "also allow http:// to other machines, which sends the key unencrypted")
	r := &s.source.Requests
	f.DurationVar(&r.Timeout, "timeout", transport.DefaultTimeout, "how long one attempt may wait for its answer")
	f.IntVar(&r.Retries, "retries", transport.DefaultRetries, "how often to try a request again that may succeed later; --patience may end that earlier")
	f.DurationVar(&r.Patience, "patience", 0, fmt.Sprintf("how long to go on with one request, all attempts together (default %s; %s while the service has not answered at all); --retries may end that earlier", transport.DefaultPatience, transport.DefaultFirstPatience))
	f.IntVar(&r.Concurrency, "concurrency", transport.DefaultConcurrency, "most requests at once, within --requests-per-minute")
	f.IntVar(&r.PerMinute, "requests-per-minute", 0, fmt.Sprintf("most requests per minute; 0 for no limit (default: %d for API v2, no limit for v1)", definition.DefaultV2PerMinute))
}

// RegisterMaxRequests adds --max-requests, the bound of the requests of a plan.
func (s *ServiceFlags) RegisterMaxRequests(f *pflag.FlagSet) {
	f.IntVar(&s.source.Requests.MaxRequests, "max-requests", definition.DefaultMaxRequests, "do not start if more requests than this are planned")
}

// Source checks the flags and returns the service that they name, with its API key. Variables of the
// environment take the place of flags that were not given.
func (s *ServiceFlags) Source(env Environment) (definition.Source, error) {
	src := s.source
	src.BaseURL, src.Account = or(src.BaseURL, env, "FORMETL_BASE_URL"), or(src.Account, env, "FORMETL_ACCOUNT")
	switch r := src.Requests; {
	case src.BaseURL == "":
		return src, errors.New("no service: add --base-url, such as --base-url https://fs1.example.com, or set FORMETL_BASE_URL")
	case r.Concurrency < 1:
		return src, fmt.Errorf("--concurrency %d: give a number above 0", r.Concurrency)
	case r.PerMinute < 0:
		return src, fmt.Errorf("--requests-per-minute %d: give a number above 0, or 0 for no limit", r.PerMinute)
	case r.Retries < 0:
		return src, fmt.Errorf("--retries %d: give 0 or a larger number", r.Retries)
	case r.MaxRequests < 0:
		return src, fmt.Errorf("--max-requests %d: give a number above 0, or 0 for no limit", r.MaxRequests)
	case r.Patience < 0:
		return src, fmt.Errorf("--patience %s: give a length of time such as 30s or 5m", r.Patience)
	case r.Timeout <= 0:
		return src, fmt.Errorf("--timeout %s: give a length of time such as 30s", r.Timeout)
	}
	if _, err := transport.ParseBaseURL(src.BaseURL, src.AllowHTTP); err != nil {
		return src, fmt.Errorf("%s: %s", named("--base-url", s.source.BaseURL, "FORMETL_BASE_URL"), // the error of Parse may hold a secret
			strings.ReplaceAll(err.Error(), "set allow_http: true", "give --allow-http"))
	}
	if src.Account == "" {
		return src, errors.New("no account: add --account, or set FORMETL_ACCOUNT; in a form's link, such as https://fs1.example.com/acme/form1/, it is acme")
	}
	api, err := ParseAPI(s.api, env)
	if err != nil {
		return src, err
	}
	src.Requests.OwnBudgets = s.given != nil && s.given.Changed("requests-per-minute")
	src.SetAPI(cmp.Or(api, definition.APIAuto))
	if src.Key, err = apiKey(s.KeyFile, env); err != nil {
		return src, err
	}
	zone := cmp.Or(or(s.timezone, env, "FORMETL_TIMEZONE"), MachineZone())
	if src.Zone, err = definition.LoadZone(zone); err != nil {
		return src, fmt.Errorf("%s: %w", named("--timezone", s.timezone, "FORMETL_TIMEZONE"), err)
	}
	return src, nil
}

// ParseAPI returns the generation of the service that --api or the environment names, "" if neither
// does.
func ParseAPI(flag string, env Environment) (definition.API, error) {
	switch api := definition.API(or(flag, env, "FORMETL_API")); api {
	case "", definition.APIv1, definition.APIv2, definition.APIAuto:
		return api, nil
	default:
		return "", fmt.Errorf("%s: there is no API %q: give v1, v2 or auto", named("--api", flag, "FORMETL_API"), string(api))
	}
}

// BesideDefinition refuses the flags that name a service where a definition names the service.
// Only the API key may come from a flag then.
func BesideDefinition(given *pflag.FlagSet, file string) error {
	service := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(ServiceFlags).Register(service, "")
	var err error
	given.Visit(func(f *pflag.Flag) {
		if err == nil && f.Name != "api-key-file" && service.Lookup(f.Name) != nil {
			err = Usagef("--%s does not apply, because source: in the definition %s says how to ask the service: leave it out, or change the definition", f.Name, file)
		}
	})
	return err
}

// NamesNoZone tells whether neither a flag nor the environment names the account's time zone.
func (s *ServiceFlags) NamesNoZone(env Environment) bool {
	return or(s.timezone, env, "FORMETL_TIMEZONE") == ""
}

// or returns a flag's value, or else that of a variable of the environment, "" if neither is given.
func or(flag string, env Environment, name string) string {
	if value, set := env(name); flag == "" && set {
		return value
	}
	return flag
}

// named returns the name of the flag, or that of the variable which gives the value if the
// flag does not.
func named(flag, value, variable string) string {
	if value == "" {
		return variable
	}
	return flag
}

// apiKey reads the API key from a file, or without a file from the environment.
func apiKey(file string, env Environment) (transport.Secret, error) {
	if file != "" {
		key, err := definition.KeyFromFile(file)
		if err != nil {
			return key, fmt.Errorf("--api-key-file: %w; give the path of a file that contains only the key", err)
		}
		return key, nil
	}
	key := transport.NewSecret(or("", env, definition.KeyVariable)).From(definition.KeyVariable)
	if key.IsZero() {
		return key, fmt.Errorf("no API key: set %s, or add --api-key-file FILE", definition.KeyVariable)
	}
	return key, nil
}

// MachineZone returns the IANA name of the machine's time zone, UTC if it has no name.
func MachineZone() string {
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

// StatePath returns the place of the state that a flag or a variable gives: an absolute path or an
// address, "" for "".
func StatePath(given string) (string, error) {
	if given == "" || definition.OnS3(given) {
		return given, nil
	}
	return filepath.Abs(given)
}

// StateVariable is the variable of the environment that says where the state lies if neither a flag
// nor a definition does.
const StateVariable = "FORMETL_STATE"

// StatePlace returns where the state of a command without a definition lies: where a flag or the
// environment says, else in the user's cache folder. If that folder cannot be written, the state
// lies in the system's temporary folder, and note says so.
func StatePlace(given string, env Environment) (folder, note string, err error) {
	if given = or(given, env, StateVariable); given != "" {
		folder, err = StatePath(given)
		return folder, "", err
	}
	cache, err := os.UserCacheDir()
	if err == nil {
		folder = filepath.Join(cache, "formetl")
		if err = writable(folder); err == nil {
			return folder, "", nil
		}
	}
	note = fmt.Sprintf("note: formetl cannot write to %s, so it keeps what unfinished exports read, and its count of requests, in a temporary folder; choose a lasting one with --state", cmp.Or(folder, "your cache folder"))
	folder = filepath.Join(os.TempDir(), fmt.Sprintf("formetl-%d", os.Getuid()))
	if info, err := os.Lstat(folder); err == nil && (!info.IsDir() || info.Mode().Perm() != 0o700) {
		folder, err = os.MkdirTemp("", "formetl-") // the folder belongs to another user
		return folder, note, err
	}
	return folder, note, writable(folder)
}

// writable makes a folder if it does not exist, and returns an error if no file can be made in it.
func writable(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, ".try-*")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// CheckForm checks the value of --form for a command on one form.
func CheckForm(form string) error {
	switch {
	case form == "":
		return errors.New("no form: add --form NAME; `formetl forms` lists the names")
	case form == "." || form == "..":
		return fmt.Errorf("--form %q is not the name of a form; `formetl forms` lists the names", form)
	case strings.ContainsAny(form, "/\\\x00"):
		return fmt.Errorf("--form %q: the name of a form contains no slash; in a link such as https://fs1.example.com/acme/form1/, it is form1; `formetl forms` lists the names", form)
	}
	return nil
}

// RegisterNames adds --names, which says what columns are named after. more ends its help.
func RegisterNames(f *pflag.FlagSet, names *string, more string) {
	f.StringVar(names, "names", "label", "name columns after: label (full_name), heading (the form's own words) or id (item_12)"+more)
}

// Naming returns what the value of --names stands for.
func Naming(names string) (schemas.Naming, error) {
	switch n := schemas.Naming(names); n {
	case schemas.ByID, schemas.ByLabel, schemas.ByHeading:
		return n, nil
	}
	return "", fmt.Errorf("--names %q: give label, heading or id", names)
}

// DefinitionFlags are the flags of commands that work from definitions. A flag takes
// precedence over the definition; the environment never does.
type DefinitionFlags struct {
	RangeFlags
	KeyFile, State string
	Forms          []string
	// NoCommands tells not to run the commands that definitions name for secrets.
	NoCommands bool
	variables  []string
}

// Register adds all flags of DefinitionFlags.
func (d *DefinitionFlags) Register(set *pflag.FlagSet) {
	d.RangeFlags.Register(set, "the definition's")
	d.RegisterForms(set)
	d.RegisterKey(set, ", instead of the definition's reference")
}

// RegisterForms adds only --form, --state and --var.
func (d *DefinitionFlags) RegisterForms(set *pflag.FlagSet) {
	set.StringArrayVar(&d.Forms, "form", nil, "only this form of the definition; repeatable")
	set.StringVar(&d.State, "state", "", "folder or s3://bucket/prefix/ where runs keep what they have read until they end, and count their requests; give each run the same (default: the definition's, else FORMETL_STATE or .formetl/ beside it)")
	d.RegisterVariables(set)
}

// RegisterVariables adds only --var.
func (d *DefinitionFlags) RegisterVariables(set *pflag.FlagSet) {
	set.StringArrayVar(&d.variables, "var", nil, "NAME=VALUE: the value of ${var:NAME} in the definition; repeatable")
}

// Variables returns the values of --var by name.
func (d *DefinitionFlags) Variables() (map[string]string, error) {
	values := map[string]string{}
	for _, given := range d.variables {
		name, value, ok := strings.Cut(given, "=")
		_, twice := values[name]
		switch {
		case !ok || name == "":
			return nil, fmt.Errorf("--var %q: give NAME=VALUE, such as --var stage=test", given)
		case strings.TrimSpace(value) == "": // refused, as an empty variable of the environment
			return nil, fmt.Errorf("--var %s: the value is empty; give --var %s=VALUE, or leave it out to use the default under vars", name, name)
		case twice:
			return nil, fmt.Errorf("--var %s was given twice: give it once", name)
		}
		values[name] = value
	}
	return values, nil
}

// Given returns the flags that a proposed command must repeat so that it works on the same
// definition: those that give values to it, and those that choose its forms.
func (d *DefinitionFlags) Given() (words []string) {
	for _, f := range []struct {
		name   string
		values []string
	}{{"--var", d.variables}, {"--form", d.Forms}, {"--state", []string{d.State}}, {"--api-key-file", []string{d.KeyFile}}} {
		for _, value := range f.values {
			if value != "" {
				words = append(words, f.name, value)
			}
		}
	}
	return words
}

// RegisterKey adds --api-key-file. when is the end of its help, which says when the key is used.
func (d *DefinitionFlags) RegisterKey(set *pflag.FlagSet, when string) {
	set.StringVar(&d.KeyFile, "api-key-file", "", "file that contains the API key"+when)
}

// Options returns what the flags tell a run besides its definition.
func (d *DefinitionFlags) Options() (pipelines.Options, error) {
	o, err := d.RangeFlags.Options()
	o.Forms = d.Forms
	return o, err
}

// RangeFlags are the flags that give a range of wall-clock time of the account's zone: --from and
// --to, or --last, or --this; and --through in place of --to.
type RangeFlags struct {
	from, to, through, last, this string
	set                           *pflag.FlagSet
}

// Register adds the flags. otherwise says which bounds count without them.
func (r *RangeFlags) Register(set *pflag.FlagSet, otherwise string) {
	r.set = set
	set.StringVar(&r.from, "from", "", "first day or time of the results, by date_finish, else date_start, in the account's zone, or a time before now such as -30d (default: "+otherwise+")")
	set.StringVar(&r.to, "to", "", "the first day that you no longer want, or give --through (default: "+otherwise+")")
	set.StringVar(&r.through, "through", "", "the last day that you want, or give --to")
	set.StringVar(&r.last, "last", "", "instead of --from: the last whole calendar day, week, month, quarter or year, or a time up to now such as 7d, 12h or 6mo")
	set.StringVar(&r.this, "this", "", "instead of --from: the current day, week, month, quarter or year, up to now")
}

// Options returns the range in Range, whose bounds are nil where no flag gives one. The error is
// about a time that cannot be read, flags that exclude one another, or an empty range.
func (r *RangeFlags) Options() (o pipelines.Options, err error) {
	var given []string
	for _, flag := range []struct {
		name, value, example string
		read                 func(string) error
	}{
		{"from", r.from, "a date such as 2026-01-31", func(s string) (err error) { o.Range.From, err = definition.ParseBound(s); return err }},
		{"to", r.to, "a date such as 2026-01-31", func(s string) (err error) { o.Range.To, err = definition.ParseBound(s); return err }},
		{"through", r.through, "a date such as 2026-01-31", func(s string) (err error) { o.Range.To, err = definition.ParseThrough(s); return err }},
		{"last", r.last, "month, for example", func(s string) (err error) { o.Range, err = definition.ParseLast(s); return err }},
		{"this", r.this, "month, for example", func(s string) (err error) { o.Range, err = definition.ParseThis(s); return err }},
	} {
		if flag.value == "" && (r.set == nil || !r.set.Changed(flag.name)) {
			continue
		}
		if flag.value == "" { // as from a variable of the shell that is not set
			return o, fmt.Errorf("--%s: the value is empty; give %s, or leave the flag out", flag.name, flag.example)
		}
		if err := flag.read(flag.value); err != nil {
			return o, fmt.Errorf("--%s: %w", flag.name, err)
		}
		if given = append(given, flag.name); len(given) > 1 && (given[0] != "from" || flag.name == "last" || flag.name == "this" || len(given) > 2) {
			return o, fmt.Errorf("--%s and --%s both set the range: give only one of them", given[len(given)-2], flag.name)
		}
	}
	return o, nil
}

// CheckOrdinary returns a load.ErrUnusable if a device, a pipe, a socket or a link lies at a local
// path, because a file would replace it. Not even --force makes formetl write there.
func CheckOrdinary(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil //nolint:nilerr // nothing is there, or the write will fail and tell why
	}
	return load.NotOrdinary(path, info, func() (string, error) { return os.Readlink(path) })
}
