package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	sdklog "go.temporal.io/sdk/log"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/cmd/internal/flags"
)

// connection says where Temporal is, as Temporal's own programs are told: by its file
// temporal.toml and its variables TEMPORAL_…. Flags come before them.
type connection struct {
	address, namespace, queue, keyFile string

	lookup flags.Environment
}

func (c *connection) register(set *pflag.FlagSet) {
	set.StringVar(&c.address, "address", "", "HOST:PORT of Temporal (TEMPORAL_ADDRESS; default localhost:7233)")
	set.StringVar(&c.namespace, "namespace", "", "namespace at Temporal (TEMPORAL_NAMESPACE; default default)")
	set.StringVar(&c.queue, "task-queue", "formetl", "task queue of the workers")
	set.StringVar(&c.keyFile, "temporal-api-key-file", "", "file that holds the API key of Temporal (else TEMPORAL_API_KEY)")
}

// variables are those of the environment.
type variables flags.Environment

// Environ returns none: no group of variables is looked for.
func (variables) Environ() []string { return nil }

// LookupEnv returns one.
func (v variables) LookupEnv(name string) (string, bool) { return v(name) }

// options are those of the client. With a key it connects by TLS.
func (c *connection) options() (o client.Options, err error) {
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{EnvLookup: variables(c.lookup)})
	if err != nil {
		return o, exit.Usagef("what is set of Temporal cannot be read: %w", err)
	}
	profile.Address = cmp.Or(c.address, profile.Address, client.DefaultHostPort)
	profile.Namespace = cmp.Or(c.namespace, profile.Namespace, client.DefaultNamespace)
	if c.keyFile != "" {
		data, err := os.ReadFile(c.keyFile)
		if err != nil {
			return o, exit.Usagef("--temporal-api-key-file: %w", err)
		}
		profile.APIKey = string(data)
	}
	profile.APIKey = strings.TrimSpace(profile.APIKey)
	if o, err = profile.ToClientOptions(envconfig.ToClientOptionsRequest{}); err != nil {
		return o, exit.Usagef("what is set of Temporal cannot be used: %w; see TEMPORAL_TLS_… in the documentation", err)
	}
	return o, nil
}

// dial connects to Temporal.
func (c *connection) dial(ctx context.Context, p *process) (client.Client, error) {
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	o.Logger = sdklog.NewStructuredLogger(p.log.Logger)
	connected, err := client.DialContext(ctx, o)
	if err != nil {
		return nil, temporalError("connect to Temporal at "+o.HostPort, err)
	}
	return connected, nil
}

// temporalError says what failed at Temporal, and with which exit code.
func temporalError(what string, err error) error {
	code := exit.Temporary
	denied, refused := errors.AsType[*serviceerror.PermissionDenied](err)
	switch {
	case refused:
		code, err = exit.NoPermission, denied
	case isType[*serviceerror.NamespaceNotFound](err), isType[*serviceerror.InvalidArgument](err):
		code = exit.Config
	}
	return &exit.Error{Code: code, Err: fmt.Errorf("cannot %s: %w; check the address, the namespace and the key, and that the server runs", what, err)}
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// userAgent names the program to the form service.
func userAgent(version string) string { return "formetl-worker/" + version }
