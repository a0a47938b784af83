package peer

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/drover-project/drover"
)

// ServerNames are the names of which a server's certificate carries one: Drover's, and Nomad's for certificates that were
// made for it.
func ServerNames(region string) []string {
	return []string{"server." + region + ".drover", "server." + region + ".nomad"}
}

// isServerName reports whether the name is a server's of any region.
func isServerName(name string) bool {
	parts := strings.Split(name, ".")
	return len(parts) == 3 && parts[0] == "server" && parts[1] != "" && parts[1] != "*" && (parts[2] == "drover" || parts[2] == "nomad")
}

// certified refuses whoever has no server's certificate of the authority. The certificate must be of this region; where requests
// are relayed, of the region that is meant, or of any if none is. Gossip does not decide: it says what anybody says there, also
// which region is the authoritative one. It verifies the chain itself: the listener also trusts the authority of the fleet's
// machines, which must not speak for servers.
func (p *Port) certified(state tls.ConnectionState, proto Protocol, region string) error {
	if len(state.PeerCertificates) == 0 {
		return drover.Errorf(drover.Unauthorized, "the peer shows no certificate")
	}
	leaf, rest := state.PeerCertificates[0], x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		rest.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: p.cfg.TLS().RootCAs, Intermediates: rest, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		CurrentTime: p.cfg.Clock.Now(),
	})
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		return drover.Errorf(drover.Unauthorized, "the peer's certificate: %w: servers have one authority, by tls.ca_file, or by the same "+
			"server.encrypt at the first start of each; else by ca.pem and ca-key.pem of one of them", err)
	}
	if err != nil {
		return drover.Errorf(drover.Unauthorized, "the peer's certificate: %w", err)
	}
	names, anywhere := ServerNames(p.cfg.Self().Region), false
	if proto == Forward {
		if anywhere = region == ""; !anywhere {
			names = ServerNames(region)
		}
	}
	if !slices.ContainsFunc(leaf.DNSNames, func(name string) bool {
		return slices.Contains(names, name) || anywhere && isServerName(name)
	}) {
		return drover.Errorf(drover.Unauthorized, "the peer's certificate is for %q: a server's has the name %q", leaf.DNSNames, names[0])
	}
	return nil
}

// The proof in clear text. Both sides say a nonce. Then the dialler, and after it the listener, say a MAC over both nonces with
// the secret. So an eavesdropper learns nothing that helps later, and what one side said cannot be sent back to it.
const nonceBytes = 32

// prove proves that both sides have a secret in common. Errors: Unauthorized; those of the connection.
func (p *Port) prove(ctx context.Context, c net.Conn, proto Protocol, address string, dialled bool) error {
	var secrets []string
	if p.cfg.Secrets != nil {
		secrets = p.cfg.Secrets(ctx, address)
	}
	if len(secrets) == 0 {
		return drover.Errorf(drover.Unauthorized, "servers speak with each other over TLS, or with a secret of theirs: set server.encrypt")
	}
	mine, theirs := make([]byte, nonceBytes), make([]byte, nonceBytes)
	_, _ = rand.Read(mine) // it never fails
	_, err := c.Write(mine)
	n := 0
	if err == nil {
		n, err = io.ReadFull(c, theirs)
	}
	switch {
	case err != nil && n == 0 && dialled && ctx.Err() == nil:
		return errSilent
	case err != nil:
		return noProof(err)
	}
	dialler, listener := mine, theirs
	if !dialled {
		dialler, listener = theirs, mine
	}
	mac := func(side, secret string) []byte {
		m := hmac.New(sha256.New, []byte(secret))
		for _, part := range []string{greeting(proto), side + "\n", string(dialler), string(listener)} {
			m.Write([]byte(part)) // it never fails
		}
		return m.Sum(nil)
	}
	say := func(side, secret string) error { _, err := c.Write(mac(side, secret)); return err }
	check := func(side string, secrets ...string) (proved string, err error) {
		got := make([]byte, sha256.Size)
		if _, err := io.ReadFull(c, got); err != nil {
			return "", noProof(err)
		}
		for _, secret := range secrets {
			if hmac.Equal(got, mac(side, secret)) {
				return secret, nil
			}
		}
		return "", drover.Errorf(drover.Unauthorized, "the peer has another secret: servers need the same server.encrypt")
	}
	if dialled {
		if err := say("dialler", secrets[0]); err != nil {
			return err
		}
		_, err := check("listener", secrets[0])
		return err
	}
	proved, err := check("dialler", secrets...)
	if drover.CodeOf(err) == drover.Unauthorized {
		_, _ = c.Write(make([]byte, sha256.Size)) // no proof, so that who dialled hears that it has another secret
	}
	if err != nil {
		return err
	}
	return say("listener", proved)
}

// errSilent says that a listener closed the connection without a word: so do programs of before when they are told of a newer
// protocol.
var errSilent = noProof(errors.New("it closed the connection without a word"))

func noProof(err error) error {
	return drover.Errorf(drover.Unauthorized, "the peer gave no proof that it is a server: %w", err)
}

// refusals remembers who was refused and why, so that each is logged once.
type refusals struct {
	mu   sync.Mutex
	seen map[string]bool // guarded by mu
}

// first reports whether the refusal is new. The port from which it was dialled is another each time, and in texts of the network's.
func (r *refusals) first(from net.Addr, err error) bool {
	const most = 1000 // more are not told apart
	host, _, _ := net.SplitHostPort(from.String())
	text := err.Error()
	if op, ok := errors.AsType[*net.OpError](err); ok {
		text = strings.ReplaceAll(text, op.Error(), op.Op+": "+op.Err.Error())
	}
	key := host + "\x00" + text
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	if r.seen[key] || len(r.seen) >= most {
		return false
	}
	r.seen[key] = true
	return true
}
