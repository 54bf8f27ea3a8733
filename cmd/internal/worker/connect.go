package worker

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/cmd/internal/flags"
)

// connection are the flags that say where Temporal is. Each has a variable of the
// environment, which is the one of Temporal's own programs.
type connection struct {
	address, namespace, queue      string
	tls                            bool
	cert, key, authority, hostName string
	keyFile                        string

	lookup flags.Environment
}

func (c *connection) register(set *pflag.FlagSet) {
	set.StringVar(&c.address, "address", "", "HOST:PORT of Temporal (TEMPORAL_ADDRESS; default localhost:7233)")
	set.StringVar(&c.namespace, "namespace", "", "namespace at Temporal (TEMPORAL_NAMESPACE; default default)")
	set.StringVar(&c.queue, "task-queue", "formetl", "task queue of the workers")
	set.BoolVar(&c.tls, "tls", false, "connect by TLS (TEMPORAL_TLS; set by any other flag of TLS and by an API key)")
	set.StringVar(&c.cert, "tls-cert-path", "", "file of the client's certificate (TEMPORAL_TLS_CLIENT_CERT_PATH)")
	set.StringVar(&c.key, "tls-key-path", "", "file of the certificate's key (TEMPORAL_TLS_CLIENT_KEY_PATH)")
	set.StringVar(&c.authority, "tls-ca-path", "", "file of the authority that signed the server's certificate (TEMPORAL_TLS_SERVER_CA_CERT_PATH)")
	set.StringVar(&c.hostName, "tls-server-name", "", "host name in the server's certificate (TEMPORAL_TLS_SERVER_NAME)")
	set.StringVar(&c.keyFile, "temporal-api-key-file", "", "file that holds the API key of Temporal (else TEMPORAL_API_KEY)")
}

// variable returns a flag's value, or else that of a variable.
func (c *connection) variable(flag, name string) string {
	if flag != "" {
		return flag
	}
	value, _ := c.lookup(name)
	return value
}

// options are those of the client.
func (c *connection) options() (o client.Options, err error) {
	o.HostPort = cmp.Or(c.variable(c.address, "TEMPORAL_ADDRESS"), client.DefaultHostPort)
	o.Namespace = cmp.Or(c.variable(c.namespace, "TEMPORAL_NAMESPACE"), client.DefaultNamespace)
	key, _ := c.lookup("TEMPORAL_API_KEY")
	if c.keyFile != "" {
		data, err := os.ReadFile(c.keyFile)
		if err != nil {
			return o, exit.Usagef("--temporal-api-key-file: %w", err)
		}
		key = string(data)
	}
	if key = strings.TrimSpace(key); key != "" {
		o.Credentials = client.NewAPIKeyStaticCredentials(key)
	}
	o.ConnectionOptions.TLS, err = c.config()
	if err == nil && o.ConnectionOptions.TLS == nil && key != "" {
		o.ConnectionOptions.TLS = &tls.Config{MinVersion: tls.VersionTLS12} // a key never travels unprotected
	}
	return o, err
}

// config is the configuration of TLS, nil for plain connections.
func (c *connection) config() (*tls.Config, error) {
	cert, key := c.variable(c.cert, "TEMPORAL_TLS_CLIENT_CERT_PATH"), c.variable(c.key, "TEMPORAL_TLS_CLIENT_KEY_PATH")
	authority, name := c.variable(c.authority, "TEMPORAL_TLS_SERVER_CA_CERT_PATH"), c.variable(c.hostName, "TEMPORAL_TLS_SERVER_NAME")
	wanted := c.tls
	if text, ok := c.lookup("TEMPORAL_TLS"); ok && text != "" && !wanted {
		var err error
		if wanted, err = strconv.ParseBool(text); err != nil {
			return nil, exit.Usagef("TEMPORAL_TLS is %q; give true or false", text)
		}
	}
	if !wanted && cert+key+authority+name == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name}
	if cert+key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, exit.Usagef("the client's certificate for Temporal cannot be read: %w; give both --tls-cert-path and --tls-key-path", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if authority != "" {
		data, err := os.ReadFile(authority)
		if err != nil {
			return nil, exit.Usagef("--tls-ca-path: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(data) {
			return nil, exit.Usagef("--tls-ca-path: %s holds no certificate in PEM form", authority)
		}
	}
	return config, nil
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
