package gate

import (
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

// Authority certifies machines of the fleet. They come without a certificate of the configured authority, and could not
// call otherwise where the links are mutual TLS. It is made from the fleet's key alone, so all servers have the same one.
type Authority struct {
	cert *x509.Certificate
	key  ed25519.PrivateKey
}

// NewAuthority derives the authority from the fleet's key. Errors: Internal.
func NewAuthority(fleetKey []byte) (*Authority, error) {
	mac := hmac.New(sha256.New, fleetKey)
	mac.Write([]byte("drover-fleet-authority"))
	a := &Authority{key: ed25519.NewKeyFromSeed(mac.Sum(nil))}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "drover fleet"},
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC),
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

// Certify returns a certificate, in PEM, for the key that signed the request. It names the machine, whatever the request
// says, and is good for being a client only. Errors: Invalid.
func (a *Authority) Certify(request []byte, machine string, now time.Time) ([]byte, error) {
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
