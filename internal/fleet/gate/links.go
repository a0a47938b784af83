package gate

import (
	"context"
	"crypto/tls"
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/link"
)

// Registrar certifies machines, and knows which there are. Gate is one.
type Registrar interface {
	Authority() (*Authority, error)
	// Own is the authority of servers that certify ordinary nodes, too; nil where the configuration names another one.
	Own() *Authority
	Machine(token string) (name string, err error)
	Certify(ctx context.Context, who link.Applicant, request []byte) (certificate []byte, err error)
}

// Allow decides whether a call may pass that came over a connection with this state, and says that it is of this node with this
// token, where the links are mutual TLS. Who shows no certificate may ask for one and do nothing else. Who shows one of the fleet's
// authority acts as the machine that it names, while there is that machine. Who shows one that the servers gave to a node
// acts as that node. Errors: Unauthorized, Unavailable.
func Allow(r Registrar, conn *tls.ConnectionState, node, token string) error {
	if conn == nil || len(conn.VerifiedChains) == 0 {
		return drover.Errorf(drover.Unauthorized, "a client certificate is needed")
	}
	chain := conn.VerifiedChains[0]
	if own := r.Own(); own != nil && chain[len(chain)-1].Equal(own.cert) {
		if is := chain[0].Subject.CommonName; len(chain[0].DNSNames) == 0 && is != node { // a server's has names
			return drover.Errorf(drover.Unauthorized, "the certificate is of node %s, and %q shows it: remove client/tls "+
				"from this node's data_dir, if it was copied from there", is, node)
		}
		return nil
	}
	a, err := r.Authority()
	if err != nil {
		return err
	}
	if !chain[len(chain)-1].Equal(a.cert) {
		return nil // of the configured authority
	}
	if name, err := r.Machine(token); err != nil || name != chain[0].Subject.CommonName {
		return drover.Errorf(drover.Unauthorized, "the certificate is not of the machine that the token is of, or that is gone")
	}
	return nil
}

// Handler puts the registrar before a handler of links: who has no certificate yet may ask for one, and Allow decides
// about all other calls. The caller serves it with TLS. What is refused is looked at again once current has returned: a server of
// several may not know yet what another one bought. A machine that is refused powers itself off.
func Handler(r Registrar, current func(context.Context) error, next http.Handler) http.Handler {
	settled := func(ctx context.Context, decide func() error) error {
		err := decide()
		if code := drover.CodeOf(err); code != drover.Unauthorized && code != drover.Unavailable {
			return err
		}
		if why := current(ctx); why != nil {
			return drover.Errorf(drover.Unavailable, "it is not known whether the machine may come in: %w", why)
		}
		return decide()
	}
	enroll := link.EnrollHandler(func(ctx context.Context, who link.Applicant, csr []byte) (cert []byte, err error) {
		err = settled(ctx, func() error {
			cert, err = r.Certify(ctx, who, csr)
			return err
		})
		return cert, err
	})
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == link.EnrollPath {
			enroll.ServeHTTP(w, q)
			return
		}
		who := link.CallerOf(q.Header)
		err := settled(q.Context(), func() error { return Allow(r, q.TLS, who.NodeID, who.Tokens.Join) })
		switch {
		case drover.CodeOf(err) == drover.Unauthorized:
			http.Error(w, err.Error(), http.StatusUnauthorized)
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		default:
			next.ServeHTTP(w, q)
		}
	})
}

// TLS returns the configuration of a listener that trusts the machines of the registrar's authority, beside what mutual trusts
// at the time. Callers without a certificate get in if they can get one, and Allow decides about them.
func TLS(r Registrar, mutual func() *tls.Config) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		out := mutual().Clone()
		out.NextProtos = []string{"h2"}
		a, err := r.Authority() // without one there are no machines
		if err == nil {
			out.ClientCAs = out.ClientCAs.Clone()
			out.ClientCAs.AddCert(a.cert)
		}
		if err == nil || r.Own() != nil {
			out.ClientAuth = tls.VerifyClientCertIfGiven
		}
		return out, nil
	}}
}
