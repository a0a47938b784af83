package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/fleet/gate"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/node/agent"
	"github.com/drover-project/drover/internal/node/machine"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/peer"
	"github.com/drover-project/drover/internal/server/live"
	"github.com/drover-project/drover/internal/tlspin"
)

// openOwn makes the certificate of a server that does so itself, and has it used. Errors: Invalid.
func (a *Agent) openOwn() (err error) {
	if !a.cfg.AutoTLS() {
		return nil
	}
	a.ownCert, err = gate.OpenOwn(filepath.Join(a.logFolder(), "tls"), a.cfg.Server.Encrypt, a.certifiedNames, a.deps.Clock)
	if err != nil {
		return err
	}
	block := a.cfg.OwnTLS()
	block.CAFile, block.CertFile, block.KeyFile = a.ownCert.CAFile(), a.ownCert.CertFile(), a.ownCert.CertFile()
	a.cfg.TLS = block
	a.deps.Log.Info("the server has an authority of its own", "authority", a.ownCert.Pin(), "file", a.ownCert.CAFile(),
		"https", optional.Value(block.HTTP))
	return a.live.Own(block)
}

// certifiedNames are those by which this server may be called: its role, this machine's names and addresses, and what the configuration
// calls it.
func (a *Agent) certifiedNames() []string {
	cfg, names := a.cfg, peer.ServerNames(a.cfg.Region)[:1]
	names = append(names, "localhost", "127.0.0.1", "::1")
	addresses := []string{cfg.HTTPAddress(), cfg.RPCAddress()}
	if adv := cfg.Advertise; adv != nil {
		addresses = append(addresses, adv.HTTP, adv.RPC, adv.Serf)
	}
	if cfg.Fleet != nil {
		addresses = append(addresses, cfg.Fleet.Server)
	}
	if u, err := url.Parse(cfg.Exec.PublicURL); err == nil {
		addresses = append(addresses, u.Host)
	}
	addresses = append(addresses, a.names()...)
	for _, host := range append(addresses, cfg.AllowedHosts...) {
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		switch {
		case ip != nil && ip.IsUnspecified():
			names = append(names, machineAddresses()...)
		case ip != nil:
			names = append(names, ip.String())
		case host != "" && !strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("*/:", r) }):
			names = append(names, host)
		}
	}
	role, rest := names[0], names[1:]
	slices.Sort(rest)
	return append([]string{role}, slices.DeleteFunc(slices.Compact(rest), func(name string) bool { return name == role })...)
}

// machineAddresses are those of this machine's interfaces.
func machineAddresses() (out []string) {
	list, _ := net.InterfaceAddrs() // without them it is called by its names
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			out = append(out, n.IP.String())
		}
	}
	return out
}

// ownAuthority is the server's own authority; nil if the configuration names another one.
func (a *Agent) ownAuthority() *gate.Authority {
	if a.ownCert == nil {
		return nil
	}
	return a.ownCert.Authority()
}

// pin names the server's own authority in join tokens; "" if it has none.
func (a *Agent) pin() string {
	if a.ownCert == nil {
		return ""
	}
	return a.ownCert.Pin()
}

// certifies reports whether nodes get certificates of this server where links are mutual TLS.
func (a *Agent) certifies() bool { return a.ownCert != nil || buys(a.cfg) }

// enrolling is how this node gets its certificate.
type enrolling struct {
	*machine.Enrollment
	files  *config.TLS
	secure *live.TLS // with the newest certificate
	ask    machine.AskFunc
}

// enroll gets this node a certificate from the server, if it is told which authority the server is known by: a join token names it,
// and the fleet's machines come with it. Errors: Unauthorized, Invalid; Unavailable when no server answered.
func (a *Agent) enroll(ctx context.Context) error {
	if !optional.Value(a.cfg.Client.Enabled) || a.control != nil || a.cfg.TLS != nil && optional.Value(a.cfg.TLS.RPC) {
		return nil
	}
	e, err := a.enrolment(ctx)
	if e == nil {
		return err
	}
	needed, err := e.Prepare()
	if err == nil && needed {
		err = e.Run(ctx, e.ask)
	}
	if e.Pin != "" && drover.CodeOf(err) == drover.Unauthorized {
		err = drover.Errorf(drover.Invalid, "client.join_token: %w", err)
	}
	if err != nil {
		return err
	}
	if e.secure, err = live.Open(e.files, "rpc"); err != nil {
		return err
	}
	if a.cfg.TLS == nil {
		a.cfg.TLS = e.files
	}
	a.enrolls = e
	return nil
}

// enrolment is how this node can get a certificate; nil if it is told of no authority. Errors: Invalid; those of the node's identity.
func (a *Agent) enrolment(ctx context.Context) (*enrolling, error) {
	c := a.cfg.Client
	list, m := c.ServerList(), cmp.Or(c.Machine, &config.Machine{})
	token, err := joinTokenFor(ctx, c, list[0])
	if err != nil {
		return nil, err
	}
	secret, pin, err := tlspin.Split(token)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "client.join_token: %w", err)
	}
	if m.Authority == "" && pin == "" || m.Authority != "" && a.cfg.TLS != nil {
		return nil, nil
	}
	who, err := agent.ReadIdentity(agent.Config{DataDir: a.dataDir}, a.deps.IDs)
	if err != nil {
		return nil, err
	}
	e := &enrolling{Enrollment: &machine.Enrollment{
		Folder: filepath.Join(a.dataDir, "client", "tls"), Authority: m.Authority, Pin: pin, Name: peer.ServerNames(a.cfg.Region)[0],
		Servers: list, DeadAfter: config.Duration(m.DeadAfter, 0), PowerOff: m.PowerOff, Clock: a.deps.Clock, Log: a.deps.Log,
	}}
	e.files = &config.TLS{RPC: new(true), CAFile: e.CAFile(), CertFile: e.CertFile(), KeyFile: e.CertFile()}
	e.ask = func(ctx context.Context, server string, secure *tls.Config, csr []byte) ([]byte, error) {
		tokens, err := nodeTokens(ctx, c, a.dataDir, server)
		if err != nil {
			return nil, err
		}
		tokens.Join = cmp.Or(tokens.Join, secret) // the server that left it may have gone
		hc := link.NewHTTPClient(secure)
		defer hc.CloseIdleConnections()
		return link.Enroll(ctx, hc, "https://"+server, link.Applicant{NodeID: who.ID, Secret: who.Secret, Tokens: tokens}, csr)
	}
	return e, nil
}

// renewCertificate renews what the agent got or made itself, until ctx ends.
func (a *Agent) renewCertificate(ctx context.Context) error {
	if a.ownCert != nil {
		return a.ownCert.Run(ctx, a.deps.Log, a.live.TakeOwn)
	}
	return a.enrolls.Keep(ctx, a.enrolls.ask, func() error { return a.enrolls.secure.Take(a.enrolls.files) })
}
