package certs

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// The routes of revocations.
const (
	revocationsPath = "/v1/operator/tls/revocations"
	revocationPath  = "/v1/operator/tls/revocation/"
)

// revoking are the flags of "drover tls cert revoke".
type revoking struct {
	node, serial, fingerprint string
	single                    bool
	until, reason             string
}

func revokeCommand(app *term.App) *cobra.Command {
	var v revoking
	run := func(ctx context.Context, c *api.Client, args []string) error { return v.run(ctx, app, c, args) }
	c := term.NomadCommand(app, "revoke [FILE]", "Have all servers refuse a certificate or a node", 0, 1, run)
	term.Describe(c, `Every server refuses what is named on new connections, and closes those that it has, as soon as it hears of it. FILE is
the certificate, in PEM; a key in it is not sent. The certificate of a node that servers gave to it names the node, and all of that node is
refused, also what it got or will get otherwise: who has the key has the node's secret, too. So is a node that is named by -node. Any other
certificate is refused by its fingerprint until it ends.`, `drover tls cert revoke -reason "laptop was stolen" global-cli-nomad.pem
drover tls cert revoke -node 3f2c6a0e-4b0f-4c8e-9a56-0d8d1b7c2f10
drover tls cert revoke -serial 49:ac:01:7e -until 2027-01-31
drover tls cert revocations
drover tls cert reinstate node:3f2c6a0e-4b0f-4c8e-9a56-0d8d1b7c2f10`)
	f := c.Flags()
	f.StringVar(&v.node, "node", "", "the whole id of a node, all of which is refused")
	f.StringVar(&v.serial, "serial", "", "a serial number: decimal, or hexadecimal as 0x… or aa:bb:…")
	f.StringVar(&v.fingerprint, "fingerprint", "", "the SHA-256 of a certificate, in hexadecimal")
	f.BoolVar(&v.single, "single", false, "of FILE, refuse this one certificate, though it is a node's")
	f.StringVar(&v.until, "until", "",
		"when to forget it, as 2027-01-31 or in RFC 3339 (default: when FILE ends, 400 days of a node, else never)")
	f.StringVar(&v.reason, "reason", "", "why, for those who read the list")
	return c
}

// request is what the flags and the file say. Errors: Invalid; those of the file.
func (v *revoking) request(args []string) (q cluster.RevokeRequest, err error) {
	q.Reason = v.reason
	given := len(args)
	for prefix, value := range map[string]string{"node:": v.node, "serial:": v.serial, "sha256:": v.fingerprint} {
		if value != "" {
			q.ID = prefix + value
			given++
		}
	}
	if given != 1 || v.single && len(args) == 0 {
		return q, drover.Errorf(drover.Invalid, "give one of FILE (with or without -single), -node, -serial and -fingerprint")
	}
	if v.until != "" {
		at, err := time.Parse(time.DateOnly, v.until)
		if err != nil {
			at, err = time.Parse(time.RFC3339, v.until)
		}
		if err != nil {
			return q, drover.Errorf(drover.Invalid, "-until: %q is no date such as 2027-01-31 and no time such as 2027-01-31T12:00:00Z", v.until)
		}
		q.ExpireTime = at.UnixNano()
	}
	if len(args) == 0 {
		return q, nil
	}
	cert, err := shownCertificate(args[0])
	if err != nil {
		return q, err
	}
	if !v.single {
		q.Certificate = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
		return q, nil
	}
	sum := sha256.Sum256(cert.Raw)
	q.ID = "sha256:" + hex.EncodeToString(sum[:])
	if q.ExpireTime == 0 {
		q.ExpireTime = cert.NotAfter.UnixNano()
	}
	return q, nil
}

// shownCertificate is the first certificate of a file, which others and a key may follow. Errors: Invalid; those of the file.
func shownCertificate(file string) (*x509.Certificate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	return nil, drover.Errorf(drover.Invalid, "%s: holds no certificate in PEM", file)
}

func (v *revoking) run(ctx context.Context, app *term.App, c *api.Client, args []string) error {
	q, err := v.request(args)
	if err != nil {
		return err
	}
	var done cluster.Revocation
	if err := c.Put(ctx, revocationsPath, nil, q, &done); err != nil {
		return err
	}
	_, err = fmt.Fprintf(app.Out, "Servers refuse %s now%s.\n", done.ID, until(&done))
	return err
}

// until is how long something is refused.
func until(r *cluster.Revocation) string {
	if r.ExpireTime == 0 {
		return ", until it is reinstated"
	}
	return ", until " + time.Unix(0, r.ExpireTime).UTC().Format(time.RFC3339)
}

func reinstateCommand(app *term.App) *cobra.Command {
	c := term.NomadCommand(app, "reinstate ID", "Take a revocation back", 1, 1, func(ctx context.Context, c *api.Client, args []string) error {
		if err := c.Delete(ctx, revocationPath+url.PathEscape(args[0]), nil, nil); err != nil {
			return err
		}
		_, err := fmt.Fprintf(app.Out, "Servers take %s again.\n", args[0])
		return err
	})
	term.Describe(c, "Servers take again what the revocation with this id was about: 'drover tls cert revocations' lists the ids.",
		"drover tls cert reinstate serial:49ac017e")
	return c
}

func revocationsCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.Command(app, "revocations", "List what servers refuse", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		date := func(at int64) string {
			if at == 0 {
				return "never"
			}
			return time.Unix(0, at).UTC().Format(time.DateOnly)
		}
		return term.List(ctx, app, o, term.Listing[*cluster.Revocation]{
			Path: revocationsPath, None: "Nothing is revoked.", Heading: "ID|Subject|Since|Forgotten|Reason",
			Row: func(r *cluster.Revocation) []string {
				return []string{r.ID, r.Subject, date(r.CreateTime), date(r.ExpireTime), r.Reason}
			},
		})
	})
	o.Bind(c.Flags())
	return c
}
