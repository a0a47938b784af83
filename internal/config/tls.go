package config

import (
	"crypto/tls"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/optional"
)

// TLS configures listeners and calls.
type TLS struct {
	// the server makes an authority and certificates itself, and gives nodes that join with a token theirs; default true for a server
	// that listens beyond loopback and has no tls block, unless insecure is true
	Auto     *bool  `hcl:"auto,optional"`
	HTTP     *bool  `hcl:"http,optional"`      // encrypt the faces; default false, with auto true beyond loopback
	RPC      *bool  `hcl:"rpc,optional"`       // encrypt links between nodes and the server, mutually; default false, with auto true
	CAFile   string `hcl:"ca_file,optional"`   // authority that certificates must be of; path
	CertFile string `hcl:"cert_file,optional"` // certificate of this agent; path
	KeyFile  string `hcl:"key_file,optional"`  // its key; path
	// ask clients of the faces for a certificate; default false
	VerifyHTTPSClient *bool `hcl:"verify_https_client,optional"`
	// servers show certificates for server.REGION.drover or server.REGION.nomad; true, which it always is: false has no effect
	VerifyServerHostname *bool `hcl:"verify_server_hostname,optional"`
	// least version of TLS: tls12 or tls13; default tls12
	MinVersion string `hcl:"tls_min_version,optional"`
	// suites of TLS 1.2, as Go names them, with commas between; default Go's
	CipherSuites string   `hcl:"tls_cipher_suites,optional"`
	Rest         hcl.Body `hcl:",remain" json:"-"`
}

// AutoTLS reports whether the server makes its authority and its certificates itself.
func (a *Agent) AutoTLS() bool {
	if a.Server == nil || !optional.Value(a.Server.Enabled) || a.Dev {
		return false
	}
	if a.TLS != nil {
		return optional.Value(a.TLS.Auto)
	}
	http, _ := a.listens("http")
	rpc, _ := a.listens("rpc")
	return (!loopback(http) || !loopback(rpc)) && !optional.Value(a.Insecure)
}

// OwnTLS is the block as it counts where AutoTLS says so, without files.
func (a *Agent) OwnTLS() *TLS {
	out := &TLS{}
	if a.TLS != nil {
		*out = *a.TLS
	}
	out.Auto, out.RPC = new(true), new(true)
	if out.HTTP == nil {
		host, _ := a.listens("http")
		beyond := !loopback(host)
		out.HTTP = &beyond
	}
	return out
}

// tlsProblems are those of the block, and of what counts without one.
func (a *Agent) tlsProblems(p *problems) {
	t := a.TLS
	if a.AutoTLS() {
		p.check(!a.Clustered() || a.Server.Encrypt != "", "server.encrypt", "must be set where several servers make their certificates "+
			"themselves: all derive one authority from it (\"drover operator gossip keyring generate\" makes one); "+
			"or give them a tls block with files")
	}
	if t == nil {
		return
	}
	if err := t.Restrict(&tls.Config{}); err != nil {
		p.errs = append(p.errs, err)
	}
	if optional.Value(t.Auto) {
		p.check(optional.Value(a.Server.Enabled), "tls.auto", "is for servers: remove it; a node gets its certificate for a join token "+
			"with @sha256:… at its end")
		p.check(!a.Dev, "tls.auto", "does not go with -dev")
		p.check(t.CAFile == "" && t.CertFile == "" && t.KeyFile == "", "tls.auto", "does not go with ca_file, cert_file and key_file: "+
			"remove them, or auto")
		p.check(t.RPC == nil || *t.RPC, "tls.rpc", "must not be false with tls.auto: remove one of them")
		return
	}
	if optional.Value(t.HTTP) || optional.Value(t.RPC) {
		p.check(t.CertFile != "" && t.KeyFile != "", "tls", "needs cert_file and key_file, or auto = true at a server")
		p.check(!optional.Value(t.RPC) || t.CAFile != "", "tls.ca_file", "must be set for rpc: nodes and servers check each other")
	}
}

// Restrict applies the least version and the suites. Errors: Invalid, with the key; older versions than TLS 1.2 and insecure
// suites are refused.
func (t *TLS) Restrict(c *tls.Config) error {
	switch t.MinVersion {
	case "", "tls12":
		c.MinVersion = tls.VersionTLS12
	case "tls13":
		c.MinVersion = tls.VersionTLS13
	default:
		return drover.Errorf(drover.Invalid, "tls.tls_min_version: must be tls12 or tls13, got %q", t.MinVersion)
	}
	for name := range strings.SplitSeq(t.CipherSuites, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		i := slices.IndexFunc(tls.CipherSuites(), func(s *tls.CipherSuite) bool { return s.Name == name })
		if i < 0 {
			return drover.Errorf(drover.Invalid, "tls.tls_cipher_suites: %q is none that is known and secure", name)
		}
		c.CipherSuites = append(c.CipherSuites, tls.CipherSuites()[i].ID)
	}
	return nil
}
