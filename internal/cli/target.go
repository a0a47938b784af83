package cli

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/internal/config"
)

// defaultAddress is where an agent serves unless it is told otherwise.
const defaultAddress = "http://127.0.0.1:4646"

// target says which agent commands talk to, and how.
type target struct {
	address, token, namespace, region                string
	caCert, caPath, clientCert, clientKey, tlsServer string
	skipVerify                                       bool
}

// bind adds the flags that all commands have which ask an agent.
func (t *target) bind(f *pflag.FlagSet) {
	f.StringVar(&t.address, "address", "", "the agent's address (DROVER_ADDR, NOMAD_ADDR; default "+defaultAddress+")")
	f.StringVar(&t.token, "token", "", "the token (DROVER_TOKEN, NOMAD_TOKEN)")
	f.StringVar(&t.namespace, "namespace", "", `the namespace, "*" for all where lists are read (DROVER_NAMESPACE, NOMAD_NAMESPACE)`)
	f.StringVar(&t.region, "region", "", "the region (DROVER_REGION, NOMAD_REGION)")
	f.StringVar(&t.caCert, "ca-cert", "", "file of the CA that signed the agent's certificate (DROVER_CACERT, NOMAD_CACERT)")
	f.StringVar(&t.caPath, "ca-path", "", "folder of such files (DROVER_CAPATH, NOMAD_CAPATH)")
	f.StringVar(&t.clientCert, "client-cert", "", "our certificate (DROVER_CLIENT_CERT, NOMAD_CLIENT_CERT)")
	f.StringVar(&t.clientKey, "client-key", "", "its key (DROVER_CLIENT_KEY, NOMAD_CLIENT_KEY)")
	f.StringVar(&t.tlsServer, "tls-server-name", "", "the name expected in the agent's certificate (…_TLS_SERVER_NAME)")
	f.BoolVar(&t.skipVerify, "tls-skip-verify", false, "do not check the agent's certificate (…_SKIP_VERIFY)")
}

// targetOf is the agent with this configuration, which serves at addr.
func targetOf(cfg *config.Agent, addr string) target {
	if cfg.TLS != nil && config.True(cfg.TLS.HTTP) {
		return target{address: "https://" + addr, token: cfg.APIToken, caCert: cfg.TLS.CAFile}
	}
	return target{address: "http://" + addr, token: cfg.APIToken}
}

// remote makes a command, with all below it, one that asks an agent.
func (a *App) remote(c *cobra.Command) *cobra.Command {
	a.target.bind(c.PersistentFlags())
	return c
}

// setting returns the flag's value, else that of DROVER_name, else that of NOMAD_name.
func (a *App) setting(flag, name string) string {
	for _, v := range []string{flag, a.Getenv("DROVER_" + name), a.Getenv("NOMAD_" + name)} {
		if v != "" {
			return v
		}
	}
	return ""
}

// resolved fills what flags left open from the environment.
func (a *App) resolved() target {
	t := a.target
	t.address, t.token = a.setting(t.address, "ADDR"), a.setting(t.token, "TOKEN")
	t.namespace, t.region = a.setting(t.namespace, "NAMESPACE"), a.setting(t.region, "REGION")
	t.caCert, t.caPath = a.setting(t.caCert, "CACERT"), a.setting(t.caPath, "CAPATH")
	t.clientCert, t.clientKey = a.setting(t.clientCert, "CLIENT_CERT"), a.setting(t.clientKey, "CLIENT_KEY")
	t.tlsServer = a.setting(t.tlsServer, "TLS_SERVER_NAME")
	if v := a.setting("", "SKIP_VERIFY"); v == "true" || v == "1" {
		t.skipVerify = true
	}
	if t.address == "" {
		t.address = defaultAddress
	}
	return t
}

// asks returns the client of the Nomad face. Errors: Invalid for settings that cannot be used.
func (a *App) asks() (*api, error) {
	t := a.resolved()
	h, err := t.http()
	if err != nil {
		return nil, err
	}
	return &api{http: h, address: t.address, token: t.token, namespace: t.namespace, region: t.region}, nil
}

// native returns the client of the native API. Errors: Invalid for settings that cannot be used.
func (a *App) native() (*client.Client, error) {
	t := a.resolved()
	h, err := t.http()
	if err != nil {
		return nil, err
	}
	return client.New(t.address, client.WithHTTPClient(h), client.WithToken(t.token))
}

func (t target) http() (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.tlsServer, InsecureSkipVerify: t.skipVerify} //nolint:gosec // asked for
	if err := t.authorities(conf); err != nil {
		return nil, err
	}
	if t.clientCert != "" || t.clientKey != "" {
		pair, err := tls.LoadX509KeyPair(t.clientCert, t.clientKey)
		if err != nil {
			return nil, drover.Errorf(drover.Invalid, "-client-cert and -client-key: %w", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	transport.TLSClientConfig = conf
	return &http.Client{Transport: reaching{transport}}, nil
}

func (t target) authorities(conf *tls.Config) error {
	files := []string{}
	if t.caCert != "" {
		files = append(files, t.caCert)
	}
	if t.caPath != "" {
		entries, err := os.ReadDir(t.caPath)
		if err != nil {
			return drover.Errorf(drover.Invalid, "-ca-path: %w", err)
		}
		for _, e := range entries {
			files = append(files, filepath.Join(t.caPath, e.Name()))
		}
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return drover.Errorf(drover.Invalid, "-ca-cert: %w", err)
		}
		if conf.RootCAs == nil {
			conf.RootCAs = x509.NewCertPool()
		}
		if !conf.RootCAs.AppendCertsFromPEM(text) {
			return drover.Errorf(drover.Invalid, "-ca-cert: %s holds no certificate in PEM form", f)
		}
	}
	return nil
}
