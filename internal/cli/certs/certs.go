package certs

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
)

// domain is that of Nomad's certificates; it is in names of files, too.
const domain = "nomad"

// Command is "drover tls".
func Command(app *term.App) *cobra.Command {
	c := term.Group("tls", "Make certificates for agents",
		term.Group("ca", "Make an authority", authorityCommand(app), infoCommand(app)),
		term.Group("cert", "Make certificates of the authority, and revoke them", certificateCommand(app), infoCommand(app), revokeCommand(app),
			revocationsCommand(app), reinstateCommand(app)))
	term.Describe(c, `Makes what TLS between agents needs, as files of the current folder: an authority once, then a certificate
for each server and each node. Keep the authority's key away from the machines.`, `drover tls ca create
drover tls cert create -server -additional-ipaddress 10.0.0.1
drover tls cert create -client`)
	return c
}

// infoCommand prints what a certificate says.
func infoCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.Command(app, "info FILE", "Show what a certificate says", 1, 1, func(_ context.Context, app *term.App, args []string) error {
		cert, err := readCertificate(args[0])
		if err != nil {
			return err
		}
		info := describe(cert, app.Clock.Now())
		if done, err := o.Data(app.Out, info); done {
			return err
		}
		return term.Facts(app.Out, "Name", info.Name, "Issuer", info.Issuer, "Serial", info.Serial, "Authority", term.YesNo(info.Authority),
			"DNS names", text(info.DNSNames), "IP addresses", text(info.IPAddresses), "Begins", info.Begins.Format(time.RFC3339),
			"Ends", info.Ends.Format(time.RFC3339), "Days left", fmt.Sprint(info.DaysLeft))
	})
	o.Bind(c.Flags())
	return c
}

// about is what a certificate says.
type about struct {
	Name, Issuer, Serial  string
	Authority             bool
	DNSNames, IPAddresses []string
	Begins, Ends          time.Time
	DaysLeft              int // negative once it ended
}

func describe(c *x509.Certificate, now time.Time) about {
	out := about{
		Name: c.Subject.CommonName, Issuer: c.Issuer.CommonName, Serial: c.SerialNumber.String(), Authority: c.IsCA, DNSNames: c.DNSNames,
		Begins: c.NotBefore, Ends: c.NotAfter, DaysLeft: int(c.NotAfter.Sub(now) / day),
	}
	for _, ip := range c.IPAddresses {
		out.IPAddresses = append(out.IPAddresses, ip.String())
	}
	return out
}

// save writes a certificate and its key to new files, the key readable by its owner only, and makes their folder. Errors: Conflict if
// one is there.
func save(file string, cert []byte, keyFile string, key []byte) error {
	for _, name := range []string{file, keyFile} {
		if _, err := os.Lstat(name); err == nil {
			return drover.Errorf(drover.Conflict, "the file %s is there already: remove it, or work in another folder", name)
		}
	}
	if err := os.MkdirAll(filepath.Dir(keyFile), 0o700); err != nil {
		return fmt.Errorf("making the folder: %w", err)
	}
	if err := create(keyFile, key, 0o600); err != nil {
		return err
	}
	return create(file, cert, 0o644)
}

func create(name string, data []byte, mode os.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
