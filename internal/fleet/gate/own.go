package gate

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/rotation"
	"github.com/drover-project/drover/internal/tlspin"
)

// certified is how long certificates of the servers' own authority are good. They are renewed at half of it.
const certified = 30 * 24 * time.Hour

// The files of Own's folder.
const (
	authorityFile    = "ca.pem"
	authorityKeyFile = "ca-key.pem"
	serverFile       = "server.pem" // the server's certificate, the authority's, and the server's key: replaced as one
)

// Own is the certificate of a server that has its authority itself. All is in one folder.
type Own struct {
	authority *Authority
	folder    string
	names     func() []string
	clock     clock.Clock
	leaf      *x509.Certificate
}

// OpenOwn reads or makes the authority in the folder, and certifies this server for the names, the first of which is its
// role; they may be addresses, and are asked for each time. An authority is
// made of the secret that servers share, so that all have the same one, or by chance if there is none. Errors: Invalid, with the file.
func OpenOwn(folder, secret string, names func() []string, c clock.Clock) (*Own, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, drover.Errorf(drover.Invalid, "data_dir: %w", err)
	}
	authority, err := keptAuthority(folder, secret)
	if err != nil {
		return nil, err
	}
	o := &Own{authority: authority, folder: folder, names: names, clock: c}
	return o, o.renew()
}

// Authority is who certified the server.
func (o *Own) Authority() *Authority { return o.authority }

// Pin names the authority.
func (o *Own) Pin() string { return tlspin.Of(o.authority.cert) }

// CAFile has the authority's certificate.
func (o *Own) CAFile() string { return filepath.Join(o.folder, authorityFile) }

// CertFile has the server's certificate and its key.
func (o *Own) CertFile() string { return filepath.Join(o.folder, serverFile) }

// Run renews the certificate at half of its time, until ctx ends. taken is called after that.
func (o *Own) Run(ctx context.Context, log *slog.Logger, taken func() error) error {
	for clock.Sleep(ctx, o.clock, tlspin.Look) {
		if !tlspin.Due(o.leaf, o.clock.Now()) {
			continue
		}
		err := o.renew()
		if err == nil {
			err = taken()
		}
		if err != nil {
			log.Error("renewing the server's certificate", "error", err, "it_ends", o.leaf.NotAfter)
			continue
		}
		log.Info("renewed the server's certificate", "it_ends", o.leaf.NotAfter)
	}
	return nil
}

// renew makes a certificate, with a key of its own. Errors: Invalid, Internal.
func (o *Own) renew() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return drover.Errorf(drover.Internal, "making a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return drover.Errorf(drover.Internal, "making a certificate: %w", err)
	}
	now, names := o.clock.Now(), o.names()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: names[0]}, NotBefore: now.Add(-backdated), NotAfter: now.Add(certified),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, o.authority.cert, key.Public(), o.authority.key)
	if err != nil {
		return drover.Errorf(drover.Internal, "making a certificate: %w", err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return drover.Errorf(drover.Internal, "making a key: %w", err)
	}
	text := slices.Concat(inPEM("CERTIFICATE", der), inPEM("CERTIFICATE", o.authority.cert.Raw), inPEM("EC PRIVATE KEY", secret))
	if err := rotation.WriteFile(o.CertFile(), text); err != nil {
		return drover.Errorf(drover.Invalid, "data_dir: %w", err)
	}
	if o.leaf, err = x509.ParseCertificate(der); err != nil {
		return drover.Errorf(drover.Internal, "making a certificate: %w", err)
	}
	return nil
}

func inPEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// keptAuthority reads the authority, or makes it.
func keptAuthority(folder, secret string) (*Authority, error) {
	keyPath, certPath := filepath.Join(folder, authorityKeyFile), filepath.Join(folder, authorityFile)
	broken := func(path string, err error) error {
		return drover.Errorf(drover.Invalid, "%s: %w; restore it, or remove %s to have an authority made, whose join token all nodes then need",
			path, err, folder)
	}
	key, err := readKey(keyPath)
	if errors.Is(err, fs.ErrNotExist) {
		if _, there := os.Lstat(certPath); there == nil {
			return nil, broken(keyPath, errors.New("is not there, and the certificate that it belongs to is"))
		}
		key, err = makeKey(keyPath, secret)
	}
	if err != nil {
		return nil, broken(keyPath, err)
	}
	text, err := os.ReadFile(certPath)
	if errors.Is(err, fs.ErrNotExist) { // a crash came between, or it is the first start
		a, err := authorityOf(key, "drover servers")
		if err != nil {
			return nil, err
		}
		return a, rotation.WriteFile(certPath, inPEM("CERTIFICATE", a.cert.Raw))
	}
	if err != nil {
		return nil, broken(certPath, err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, broken(certPath, errors.New("is no PEM"))
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err == nil && (!cert.IsCA || !key.PublicKey.Equal(cert.PublicKey)) {
		err = errors.New("is no authority's certificate, or not of the key in " + authorityKeyFile)
	}
	if err != nil {
		return nil, broken(certPath, err)
	}
	return &Authority{cert, key}, nil
}

func readKey(path string) (*ecdsa.PrivateKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("is no PEM")
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

// makeKey makes the authority's key and keeps it.
func makeKey(path, secret string) (key *ecdsa.PrivateKey, err error) {
	if secret == "" {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	} else {
		key, err = derivedKey(secret)
	}
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, rotation.WriteFile(path, inPEM("EC PRIVATE KEY", der))
}

// derivedKey is the same for the same secret. Hardly ever is a hash no key of the curve; then it is the next one.
func derivedKey(secret string) (*ecdsa.PrivateKey, error) {
	sum := []byte("drover-server-authority")
	for range 8 {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(sum)
		sum = mac.Sum(nil)
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), sum); err == nil {
			return key, nil
		}
	}
	return nil, errors.New("server.encrypt gives no key")
}
