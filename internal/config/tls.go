package config

import (
	"crypto/tls"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/drover-project/drover"
)

// TLS configures listeners and calls.
type TLS struct {
	HTTP     *bool  `hcl:"http,optional"`      // encrypt the faces; default false
	RPC      *bool  `hcl:"rpc,optional"`       // encrypt links between nodes and the server, mutually; default false
	CAFile   string `hcl:"ca_file,optional"`   // authority that certificates must be of; path
	CertFile string `hcl:"cert_file,optional"` // certificate of this agent; path
	KeyFile  string `hcl:"key_file,optional"`  // its key; path
	// ask clients of the faces for a certificate; default false
	VerifyHTTPSClient *bool `hcl:"verify_https_client,optional"`
	// least version of TLS: tls12 or tls13; default tls12
	MinVersion string `hcl:"tls_min_version,optional"`
	// suites of TLS 1.2, as Go names them, with commas between; default Go's
	CipherSuites string   `hcl:"tls_cipher_suites,optional"`
	Rest         hcl.Body `hcl:",remain" json:"-"`
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
