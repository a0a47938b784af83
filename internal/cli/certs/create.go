package certs

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
)

// subject is who an authority is.
type subject struct {
	name, country, postalCode, province, locality, street, organization, unit string
}

func (s *subject) pkix() pkix.Name {
	list := func(v string) []string {
		if v == "" {
			return nil
		}
		return []string{v}
	}
	return pkix.Name{
		CommonName: s.name, Country: list(s.country), PostalCode: list(s.postalCode), Province: list(s.province), Locality: list(s.locality),
		StreetAddress: list(s.street), Organization: list(s.organization), OrganizationalUnit: list(s.unit),
	}
}

// newAuthority are the flags of "drover tls ca create".
type newAuthority struct {
	subject
	dir        string
	domain     string
	days       int
	constrain  bool
	additional []string
}

func authorityCommand(app *term.App) *cobra.Command {
	var n newAuthority
	c := term.Command(app, "create", "Make an authority", 0, 0,
		func(_ context.Context, app *term.App, _ []string) error { return n.run(app) })
	term.Describe(c, `Makes DOMAIN-agent-ca.pem, which all agents get as tls.ca_file, and DOMAIN-agent-ca-key.pem, which signs certificates and
which no agent needs.`, "drover tls ca create")
	f := c.Flags()
	f.StringVar(&n.dir, "dir", "", "the folder to write to (made if it is not there; default: the current one)")
	f.StringVar(&n.domain, "domain", domain, "the domain of names and files")
	f.IntVar(&n.days, "days", 1825, "how many days it is good for")
	f.BoolVar(&n.constrain, "name-constraint", false, "it may sign only for the domain, drover and localhost, and for addresses")
	f.StringSliceVar(&n.additional, "additional-domain", nil, "a domain for which it may sign, too, with -name-constraint; can be repeated")
	f.StringVar(&n.name, "common-name", "Drover Agent CA", "its name")
	for flag, to := range map[string]*string{
		"country": &n.country, "postal-code": &n.postalCode, "province": &n.province, "locality": &n.locality, "street-address": &n.street,
		"organization": &n.organization, "organizational-unit": &n.unit,
	} {
		f.StringVar(to, flag, "", "its "+strings.ReplaceAll(flag, "-", " "))
	}
	return c
}

func (n *newAuthority) run(app *term.App) error {
	if len(n.additional) > 0 && !n.constrain {
		return drover.Errorf(drover.Invalid, "-additional-domain goes with -name-constraint")
	}
	t, err := template(n.pkix(), app.Clock.Now(), n.days)
	if err != nil {
		return err
	}
	t.IsCA, t.KeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign|x509.KeyUsageDigitalSignature
	if n.constrain {
		t.PermittedDNSDomainsCritical = true
		t.PermittedDNSDomains = append([]string{n.domain, "drover", "localhost"}, n.additional...)
	}
	p, err := sign(t, nil)
	if err != nil {
		return err
	}
	file, keyFile := authorityFiles(n.dir, n.domain)
	if err := save(file, p.cert, keyFile, p.key); err != nil {
		return err
	}
	_, err = fmt.Fprintf(app.Out, "==> CA certificate saved to: %s\n==> CA certificate key saved to: %s\n", file, keyFile)
	return err
}

// authorityFiles are the names of an authority's files.
func authorityFiles(dir, domain string) (cert, key string) {
	return filepath.Join(dir, domain+"-agent-ca.pem"), filepath.Join(dir, domain+"-agent-ca-key.pem")
}

// newCertificate are the flags of "drover tls cert create".
type newCertificate struct {
	server, client, cli     bool
	ca, key, domain, region string
	dir                     string
	days                    int
	names, addresses        []string
}

func certificateCommand(app *term.App) *cobra.Command {
	var n newCertificate
	c := term.Command(app, "create (-server | -client | -cli)", "Make a certificate", 0, 0,
		func(_ context.Context, app *term.App, _ []string) error { return n.run(app) })
	term.Describe(c, `Makes REGION-ROLE-DOMAIN.pem and its key, signed by the authority of the folder. A server's certificate lets
who has it read and write all state: give it to servers only. A server that nodes or people reach by an address or another
name needs that in its certificate.`,
		`drover tls cert create -server -additional-ipaddress 10.0.0.1 -additional-dnsname drover.example.com
drover tls cert create -client
drover tls cert create -cli`)
	f := c.Flags()
	f.BoolVar(&n.server, "server", false, "for a server")
	f.BoolVar(&n.client, "client", false, "for a node")
	f.BoolVar(&n.cli, "cli", false, "for people and programs that ask agents with tls.verify_https_client")
	f.StringVar(&n.dir, "dir", "", "the folder of all files (made if it is not there; default: the current one)")
	f.StringVar(&n.domain, "domain", domain, "the domain of names and files")
	f.StringVar(&n.region, "region", drover.DefaultRegion, "the region of the agents")
	f.IntVar(&n.days, "days", 365, "how many days it is good for")
	f.StringVar(&n.ca, "ca", "", "the authority's certificate (default DOMAIN-agent-ca.pem)")
	f.StringVar(&n.key, "key", "", "the authority's key (default DOMAIN-agent-ca-key.pem)")
	f.StringSliceVar(&n.names, "additional-dnsname", nil, "a name by which the agent is reached; can be repeated")
	f.StringSliceVar(&n.addresses, "additional-ipaddress", nil, "an address at which it is reached; can be repeated")
	return c
}

// role is what the certificate is for. Errors: Invalid unless exactly one was given.
func (n *newCertificate) role() (string, error) {
	roles := map[string]bool{"server": n.server, "client": n.client, "cli": n.cli}
	var given []string
	for _, role := range []string{"server", "client", "cli"} {
		if roles[role] {
			given = append(given, role)
		}
	}
	if len(given) != 1 {
		return "", drover.Errorf(drover.Invalid, "give one of -server, -client and -cli")
	}
	return given[0], nil
}

// fill puts into the template whom the certificate is for. A role has two names: that of the domain, and Drover's, which servers ask for.
func (n *newCertificate) fill(t *x509.Certificate, role string) error {
	t.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	t.DNSNames = []string{t.Subject.CommonName, role + "." + n.region + ".drover"}
	if role != "cli" {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		t.DNSNames, t.IPAddresses = append(t.DNSNames, "localhost"), []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	}
	t.DNSNames = append(t.DNSNames, n.names...)
	slices.Sort(t.DNSNames)
	t.DNSNames = slices.Compact(t.DNSNames)
	for _, address := range n.addresses {
		ip := net.ParseIP(address)
		if ip == nil {
			return drover.Errorf(drover.Invalid, "-additional-ipaddress: %q is no IP address", address)
		}
		t.IPAddresses = append(t.IPAddresses, ip)
	}
	return nil
}

func (n *newCertificate) run(app *term.App) error {
	role, err := n.role()
	if err != nil {
		return err
	}
	ca, key := authorityFiles(n.dir, n.domain)
	if n.ca != "" {
		ca = n.ca
	}
	if n.key != "" {
		key = n.key
	}
	by, err := readAuthority(ca, key)
	if err != nil {
		return err
	}
	t, err := template(pkix.Name{CommonName: role + "." + n.region + "." + n.domain}, app.Clock.Now(), n.days)
	if err != nil {
		return err
	}
	if err := n.fill(t, role); err != nil {
		return err
	}
	p, err := sign(t, by)
	if err != nil {
		return err
	}
	file := filepath.Join(n.dir, n.region+"-"+role+"-"+n.domain)
	if err := save(file+".pem", p.cert, file+"-key.pem", p.key); err != nil {
		return err
	}
	if role == "server" {
		fmt.Fprintln(app.Out, "==> Who has a server's certificate can read and write all state: give it to servers only.")
	}
	_, err = fmt.Fprintf(app.Out, "==> Signed by %s\n==> Certificate saved to: %s.pem\n==> Certificate key saved to: %s-key.pem\n",
		ca, file, file)
	return err
}

// text joins a list for people.
func text(list []string) string { return strings.Join(list, ", ") }
