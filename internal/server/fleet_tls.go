package server

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/link"
)

// machineCertified is how long a machine's certificate is good; its agent asks for another one when it is started in
// the last third.
const machineCertified = 365 * 24 * time.Hour

// authority certifies machines of the fleet, which come without a certificate of the configured authority: with mutual
// TLS they could not call otherwise. It is made from the fleet's key, so all servers have the same one.
type authority struct {
	cert *x509.Certificate
	key  ed25519.PrivateKey
}

func newAuthority(fleetKey []byte) (*authority, error) {
	mac := hmac.New(sha256.New, fleetKey)
	mac.Write([]byte("drover-fleet-authority"))
	a := &authority{key: ed25519.NewKeyFromSeed(mac.Sum(nil))}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "drover fleet"}, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		return nil, drover.Errorf(drover.Internal, "making the fleet's authority: %w", err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, drover.Errorf(drover.Internal, "making the fleet's authority: %w", err)
	}
	return a, nil
}

// certify returns a certificate for the key that signed the request, for a machine. Errors: Invalid.
func (a *authority) certify(request []byte, machine string, now time.Time) ([]byte, error) {
	block, _ := pem.Decode(request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, drover.Errorf(drover.Invalid, "the certificate request is not PEM")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = csr.CheckSignature()
	}
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "the certificate request: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, drover.Errorf(drover.Internal, "certifying a machine: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: machine}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(machineCertified),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, csr.PublicKey, a.key)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "certifying a machine: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// admits returns the configuration of a listener that also trusts the authority's machines, and lets those without a
// certificate in, for gate to see to.
func (a *authority) admits(mutual *tls.Config) *tls.Config {
	out := mutual.Clone()
	out.ClientCAs = mutual.ClientCAs.Clone()
	out.ClientCAs.AddCert(a.cert)
	out.ClientAuth, out.NextProtos = tls.VerifyClientCertIfGiven, []string{"h2"}
	return out
}

// gate is what stands before the links of nodes when they are mutual: who shows no certificate may ask for one and do
// nothing else, and who shows one of the fleet's authority acts as the machine that it names, while there is one.
type gate struct {
	authority func() (*authority, error)
	machine   func(token string) (name string, err error) // that the token is of, if the fleet has it
	enroll    http.Handler
	next      http.Handler
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == link.EnrollPath {
		g.enroll.ServeHTTP(w, r)
		return
	}
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		http.Error(w, "a client certificate is needed", http.StatusUnauthorized)
		return
	}
	a, err := g.authority()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	chain := r.TLS.VerifiedChains[0]
	if chain[len(chain)-1].Equal(a.cert) {
		name, err := g.machine(link.TokenOf(r.Header))
		if err != nil || name != chain[0].Subject.CommonName {
			http.Error(w, "the certificate is not of the machine that the token is of, or that is gone", http.StatusUnauthorized)
			return
		}
	}
	g.next.ServeHTTP(w, r)
}

// fleetAuthority returns the fleet's authority. Errors: Unavailable before the fleet has a name.
func (c *control) fleetAuthority() func() (*authority, error) {
	var mu sync.Mutex
	var made *authority // guarded by mu
	return func() (*authority, error) {
		mu.Lock()
		defer mu.Unlock()
		if made != nil {
			return made, nil
		}
		who := c.store.Snapshot().FleetIdentity()
		if who == nil {
			return nil, drover.Errorf(drover.Unavailable, "the fleet is not open yet")
		}
		var err error
		made, err = newAuthority(who.Key)
		return made, err
	}
}

// machineOf returns the machine whose token it is. Errors: Unauthorized.
func (c *control) machineOf(token string) (string, error) {
	s := c.store.Snapshot()
	who := s.FleetIdentity()
	if who == nil {
		return "", drover.Errorf(drover.Unavailable, "the fleet is not open yet")
	}
	id, err := pool.IntentOf(who.Key, token)
	if err != nil {
		return "", err
	}
	if i := s.FleetInstance(id); i == nil || i.State == drover.InstanceGone {
		return "", drover.Errorf(drover.Unauthorized, "the token is of a machine that the fleet does not have any more")
	}
	return id, nil
}

// certify gives a machine its certificate for its token. The first node that asks has the token; later only that one
// is given another, if it knows its secret.
func (c *control) certify(ctx context.Context, a *authority, who link.Identity, csr []byte, now time.Time) ([]byte, error) {
	id, err := c.machineOf(who.JoinToken)
	if err != nil {
		return nil, err
	}
	if who.NodeID == "" {
		return nil, drover.Errorf(drover.Invalid, "node: must be set")
	}
	if err := c.Authenticate(who.NodeID, who.Secret); err != nil && drover.CodeOf(err) != drover.NotFound {
		return nil, err
	}
	cert, err := a.certify(csr, id, now)
	if err != nil {
		return nil, err
	}
	return cert, c.bind(ctx, id, who.NodeID)
}

// bind gives the machine's token to the node for good. Errors: Unauthorized if it is another's.
func (c *control) bind(ctx context.Context, instance, node string) error {
	if i := c.store.Snapshot().FleetInstance(instance); i != nil && i.NodeID == node {
		return nil
	}
	_, _, err := c.log.Propose(ctx, &command.BindFleetNode{Instance: instance, Node: node})
	if code := drover.CodeOf(err); code == drover.Conflict || code == drover.NotFound {
		err = drover.Errorf(drover.Unauthorized, "registering: %w", err)
	}
	return err
}

// buys reports that the agent may buy machines.
func buys(cfg *config.Agent) bool { return cfg.Fleet != nil && len(cfg.Fleet.Providers) > 0 }

// links returns how the links of nodes are served: behind a gate if they are mutual and machines are bought.
func (a *Agent) links(next http.Handler) (http.Handler, *tls.Config, error) {
	mutual, err := tlsFor(a.cfg.TLS, "rpc")
	if err != nil || mutual == nil || !buys(a.cfg) {
		return next, mutual, err
	}
	c := a.control
	return gated(next, mutual, c.fleetAuthority(), c.machineOf, func(ctx context.Context, au *authority, who link.Identity, csr []byte) ([]byte, error) {
		return c.certify(ctx, au, who, csr, a.deps.Clock.Now())
	})
}

type certifier func(ctx context.Context, a *authority, who link.Identity, csr []byte) ([]byte, error)

// gated puts a gate before a handler of links.
func gated(next http.Handler, mutual *tls.Config, of func() (*authority, error), machine func(string) (string, error), certify certifier) (http.Handler, *tls.Config, error) {
	g := &gate{authority: of, machine: machine, next: next, enroll: link.EnrollHandler(func(ctx context.Context, who link.Identity, csr []byte) ([]byte, error) {
		a, err := of()
		if err != nil {
			return nil, err
		}
		return certify(ctx, a, who, csr)
	})}
	return g, &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		a, err := of()
		if err != nil {
			return mutual, nil //nolint:nilerr // then there are no machines
		}
		return a.admits(mutual), nil
	}}, nil
}

// machineAuthority is what machines trust: the authority of the server's certificate; "" without TLS between agents.
func machineAuthority(cfg *config.TLS) (string, error) {
	if cfg == nil || !config.True(cfg.RPC) {
		return "", nil
	}
	text, err := os.ReadFile(cfg.CAFile)
	if err != nil {
		return "", drover.Errorf(drover.Invalid, "tls.ca_file: %w", err)
	}
	return string(text), nil
}
