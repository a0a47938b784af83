package gate

import (
	"crypto"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"

	"github.com/drover-project/drover"
)

// machineCertified is how long a machine's certificate is good; its agent asks for another one when it is started in
// the last third.
const machineCertified = 365 * 24 * time.Hour

// backdated is how long before now certificates begin, as clocks differ.
const backdated = time.Hour

// Authority certifies. That of the fleet's machines is made from the fleet's key alone (NewAuthority): they come without a certificate
// of the configured authority, and could not call otherwise where the links are mutual TLS. That of servers which have no tls block
// is kept in a folder (KeptAuthority).
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority derives the authority of the fleet's machines from the fleet's key. Errors: Internal.
func NewAuthority(fleetKey []byte) (*Authority, error) {
	mac := hmac.New(sha256.New, fleetKey)
	mac.Write([]byte("drover-fleet-authority"))
	return authorityOf(ed25519.NewKeyFromSeed(mac.Sum(nil)), "drover fleet")
}

// authorityOf returns the authority with this key, whose certificate has no end. Errors: Internal.
func authorityOf(key crypto.Signer, name string) (*Authority, error) {
	a := &Authority{key: key}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		return nil, drover.Errorf(drover.Internal, "making an authority: %w", err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, drover.Errorf(drover.Internal, "making an authority: %w", err)
	}
	return a, nil
}

// Certify returns a certificate, in PEM, for the key that signed the request. It names the machine, whatever the request
// says, is good for being a client only, and for a year. Errors: Invalid.
func (a *Authority) Certify(request []byte, machine string, now time.Time) ([]byte, error) {
	return a.certify(request, machine, now, machineCertified)
}

// certify is Certify for a time.
func (a *Authority) certify(request []byte, name string, now time.Time, life time.Duration) ([]byte, error) {
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
		return nil, drover.Errorf(drover.Internal, "certifying: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-backdated), NotAfter: now.Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, csr.PublicKey, a.key)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "certifying: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
