package api

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
)

// DefaultAddress is where an agent serves unless it is told otherwise.
const DefaultAddress = "http://127.0.0.1:4646"

// Target says which agent commands talk to, and how. Empty fields are filled by Resolved. Certificates are paths of
// files.
type Target struct {
	Address, Token, TokenFile, Namespace, Region         string
	CACert, CAPath, ClientCert, ClientKey, TLSServerName string
	SkipVerify                                           bool
}

// Bind adds the flags that all commands have which ask an agent.
func (t *Target) Bind(f *pflag.FlagSet) {
	f.StringVar(&t.Address, "address", "", "the agent's address, or unix://PATH (DROVER_ADDR, NOMAD_ADDR; default "+DefaultAddress+")")
	f.StringVar(&t.Token, "token", "", "the token (DROVER_TOKEN, NOMAD_TOKEN); others on this machine see it in the list of processes")
	f.StringVar(&t.TokenFile, "token-file", "", "file that holds the token (DROVER_TOKEN_FILE)")
	f.StringVar(&t.Namespace, "namespace", "", `the namespace, "*" for all where lists are read (DROVER_NAMESPACE, NOMAD_NAMESPACE)`)
	f.StringVar(&t.Region, "region", "", "the region (DROVER_REGION, NOMAD_REGION)")
	f.StringVar(&t.CACert, "ca-cert", "", "file of the CA that signed the agent's certificate (DROVER_CACERT, NOMAD_CACERT)")
	f.StringVar(&t.CAPath, "ca-path", "", "folder of such files (DROVER_CAPATH, NOMAD_CAPATH)")
	f.StringVar(&t.ClientCert, "client-cert", "", "our certificate (DROVER_CLIENT_CERT, NOMAD_CLIENT_CERT)")
	f.StringVar(&t.ClientKey, "client-key", "", "its key (DROVER_CLIENT_KEY, NOMAD_CLIENT_KEY)")
	f.StringVar(&t.TLSServerName, "tls-server-name", "", "the name expected in the agent's certificate (…_TLS_SERVER_NAME)")
	f.BoolVar(&t.SkipVerify, "tls-skip-verify", false, "do not check the agent's certificate (…_SKIP_VERIFY)")
}

// Resolved fills what flags left open from the environment: DROVER_… comes before NOMAD_…, so that both programs can
// be set up side by side. SkipVerify can be switched on there, but not off.
func (t Target) Resolved(getenv func(string) string) Target {
	fill := func(to *string, name string) {
		*to = cmp.Or(*to, getenv("DROVER_"+name), getenv("NOMAD_"+name))
	}
	fill(&t.Address, "ADDR")
	if t.TokenFile == "" { // the flag comes before the environment's token
		fill(&t.Token, "TOKEN")
	}
	if t.Token == "" {
		t.TokenFile = cmp.Or(t.TokenFile, getenv("DROVER_TOKEN_FILE"))
	}
	fill(&t.Namespace, "NAMESPACE")
	fill(&t.Region, "REGION")
	fill(&t.CACert, "CACERT")
	fill(&t.CAPath, "CAPATH")
	fill(&t.ClientCert, "CLIENT_CERT")
	fill(&t.ClientKey, "CLIENT_KEY")
	fill(&t.TLSServerName, "TLS_SERVER_NAME")
	skip := ""
	fill(&skip, "SKIP_VERIFY")
	t.SkipVerify = t.SkipVerify || skip == "true" || skip == "1"
	t.Address = cmp.Or(t.Address, DefaultAddress)
	return t
}

// NewNative returns the client of Drover's own API at the target. Errors: Invalid for settings that cannot be used.
func NewNative(t Target) (*client.Client, error) {
	token, err := t.Secret()
	if err != nil {
		return nil, err
	}
	h, err := t.HTTPClient()
	if err != nil {
		return nil, err
	}
	return client.New(t.base(), client.WithHTTPClient(h), client.WithToken(token), client.WithNamespace(t.Namespace))
}

// maxToken bounds a token in a file, in bytes.
const maxToken = 16 << 10

// Secret returns the token, read from its file if there is one; "" if there is none. Errors: Invalid if both are given, or for a file
// that cannot be read or has no token.
func (t Target) Secret() (string, error) {
	if t.TokenFile == "" {
		return t.Token, nil
	}
	if t.Token != "" {
		return "", drover.Errorf(drover.Invalid, "-token-file: and -token are given: one of them, please")
	}
	f, err := os.Open(t.TokenFile)
	if err != nil {
		return "", drover.Errorf(drover.Invalid, "-token-file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", drover.Errorf(drover.Invalid, "-token-file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || len(text) > maxToken || strings.ContainsAny(token, "\n\r\x00") {
		return "", drover.Errorf(drover.Invalid, "-token-file: %s must have a token alone, on one line", t.TokenFile)
	}
	return token, nil
}

// Socket is the path in an address such as unix:///secrets/api.sock, which tasks have; "" in others.
func (t Target) Socket() string {
	path, _ := strings.CutPrefix(t.Address, "unix://")
	if path == t.Address {
		return ""
	}
	return path
}

// base is what paths of the API are added to.
func (t Target) base() string {
	if t.Socket() != "" {
		return "http://localhost"
	}
	return t.Address
}

// HTTPClient returns a client with the target's certificates, whose errors say why an agent cannot be reached. Errors:
// Invalid for files that cannot be used.
func (t Target) HTTPClient() (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.TLSServerName, InsecureSkipVerify: t.SkipVerify} // asked for
	if err := t.authorities(conf); err != nil {
		return nil, err
	}
	if t.ClientCert != "" || t.ClientKey != "" {
		pair, err := tls.LoadX509KeyPair(t.ClientCert, t.ClientKey)
		if err != nil {
			return nil, drover.Errorf(drover.Invalid, "-client-cert and -client-key: %w", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	transport.TLSClientConfig = conf
	if path := t.Socket(); path != "" {
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
	}
	return &http.Client{Transport: reaching{transport}}, nil
}

// authorities sets the certificates that are trusted: those of both flags in place of the system's, which stay if
// neither is given. Errors: Invalid for a file that holds no certificate.
func (t Target) authorities(conf *tls.Config) error {
	files := []string{}
	if t.CACert != "" {
		files = append(files, t.CACert)
	}
	if t.CAPath != "" {
		entries, err := os.ReadDir(t.CAPath)
		if err != nil {
			return drover.Errorf(drover.Invalid, "-ca-path: %w", err)
		}
		for _, e := range entries {
			files = append(files, filepath.Join(t.CAPath, e.Name()))
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
