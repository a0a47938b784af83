package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/e2e/program"
)

// authority is the folder of an authority that "drover tls" made.
type authority struct {
	t   *testing.T
	dir string
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := authority{t, t.TempDir()}
	a.tls("ca", "create", "-dir", a.dir)
	return a
}

func (a authority) tls(args ...string) {
	a.t.Helper()
	out, err := exec.Command(program.Binary, append([]string{"tls"}, args...)...).CombinedOutput()
	require.NoError(a.t, err, string(out))
}

func (a authority) ca() string { return filepath.Join(a.dir, "nomad-agent-ca.pem") }

// certify makes a certificate for "server", "client" or "cli" in a folder of its own, and returns its files.
func (a authority) certify(role, region string) (cert, key string) {
	a.t.Helper()
	dir := a.t.TempDir()
	a.tls("cert", "create", "-"+role, "-region", region, "-dir", dir, "-ca", a.ca(), "-key", filepath.Join(a.dir, "nomad-agent-ca-key.pem"))
	name := filepath.Join(dir, region+"-"+role+"-nomad")
	return name + ".pem", name + "-key.pem"
}

// mutual is a tls block of an agent that asks everybody for a certificate.
func (a authority) mutual(role, region string) string {
	a.t.Helper()
	cert, key := a.certify(role, region)
	return tlsBlock(a.ca(), cert, key, "http = true\n  verify_https_client = true")
}

// tlsBlock is a tls block of an agent that encrypts its links.
func tlsBlock(ca, cert, key, more string) string {
	return fmt.Sprintf("tls {\n  rpc = true\n  ca_file = %q\n  cert_file = %q\n  key_file = %q\n  %s\n}\n", ca, cert, key, more)
}

// person is how somebody with a certificate asks such agents.
func (a authority) person() *api.TLSConfig {
	a.t.Helper()
	cert, key := a.certify("cli", "global")
	return &api.TLSConfig{CACert: a.ca(), ClientCert: cert, ClientKey: key}
}
