package gate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/link"
)

// A node that was revoked gets no certificate for whatever it shows, does not register, and its secret opens nothing: a thief of its
// folder has all of that. Others are not concerned, and it is let in again once that is taken back.
func TestANodeThatWasRevokedGetsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.nodes["n1"], w.nodes["n2"] = &drover.Node{ID: "n1", SecretID: "s1"}, &drover.Node{ID: "n2", SecretID: "s2"}
	g := w.with(Config{JoinToken: "join", Own: openOwn(t, t.TempDir(), "").Authority()})
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	require.NoError(t, err)
	request := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	tries := func(node, secret, token string) map[string]error {
		who := link.Applicant{NodeID: node, Secret: secret, Tokens: exchange.Tokens{Join: token}}
		_, certified := g.Certify(t.Context(), who, request)
		return map[string]error{
			"certify": certified, "admit": g.Admit(who.Tokens, &drover.Node{ID: node}), "authenticate": g.Authenticate(node, secret),
		}
	}
	all := func(node, secret, token string, refused bool) {
		for what, err := range tries(node, secret, token) {
			if !refused {
				require.NoError(t, err, what)
				continue
			}
			require.Equal(t, drover.Unauthorized, drover.CodeOf(err), what)
			require.ErrorContains(t, err, "is revoked", what)
		}
	}
	all("n1", "s1", "join", false)
	w.revoked = map[string]*cluster.Revocation{"node:n1": {ID: "node:n1"}, "node:i1": {ID: "node:i1"}}
	all("n1", "s1", "join", true)
	require.False(t, g.Vouches(nil, link.EnrollPath, link.Caller{NodeID: "n1", Secret: "s1", Tokens: exchange.Tokens{Join: "join"}}))
	all("n2", "s2", "join", false)
	_, err = g.Certify(t.Context(), link.Applicant{NodeID: "n3", Tokens: exchange.Tokens{Join: w.token("i1")}}, request)
	require.ErrorContains(t, err, "node:i1 is revoked", "a machine is revoked by the name in its certificate")
	w.revoked = nil
	all("n1", "s1", "join", false)
}
