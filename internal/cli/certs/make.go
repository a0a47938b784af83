package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
)

const day = 24 * time.Hour

// backdated is how long before now certificates begin, so that machines whose clocks are late take them.
const backdated = 5 * time.Minute

// authority is who signs.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// pair is a certificate with its key, as PEM.
type pair struct{ cert, key []byte }

// sign makes a key and a certificate for it by the template, signed by the authority; without one by itself.
func sign(template *x509.Certificate, by *authority) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return pair{}, err
	}
	sum := sha256.Sum256(public)
	template.SubjectKeyId = sum[:]
	if by == nil {
		by = &authority{template, key}
	}
	template.AuthorityKeyId = by.cert.SubjectKeyId
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key.Public(), by.key)
	if err != nil {
		return pair{}, fmt.Errorf("making the certificate: %w", err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return pair{}, err
	}
	return pair{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}),
	}, nil
}

// template is what all certificates have.
func template(subject pkix.Name, now time.Time, days int) (*x509.Certificate, error) {
	if days < 1 {
		return nil, drover.Errorf(drover.Invalid, "-days must be at least 1, got %d", days)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: subject, NotBefore: now.Add(-backdated), NotAfter: now.Add(time.Duration(days) * day),
		BasicConstraintsValid: true,
	}, nil
}

// readAuthority reads an authority's certificate and key. Errors: Invalid with the file that is wrong.
func readAuthority(certFile, keyFile string) (*authority, error) {
	cert, err := readCertificate(certFile)
	if err != nil {
		return nil, err
	}
	if !cert.IsCA {
		return nil, drover.Errorf(drover.Invalid, "%s is no authority's certificate", certFile)
	}
	block, err := readPEM(keyFile, "EC PRIVATE KEY", "PRIVATE KEY", "RSA PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	key, err := parseKey(block)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "%s: %w", keyFile, err)
	}
	if public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(cert.PublicKey) {
		return nil, drover.Errorf(drover.Invalid, "%s is not the key of %s", keyFile, certFile)
	}
	return &authority{cert, key}, nil
}

func parseKey(block *pem.Block) (crypto.Signer, error) {
	switch block.Type {
	case "EC PRIVATE KEY":
		return x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		return x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, drover.Errorf(drover.Invalid, "it cannot sign")
	}
	return signer, nil
}

// readCertificate reads the first certificate of a file. Errors: Invalid.
func readCertificate(file string) (*x509.Certificate, error) {
	block, err := readPEM(file, "CERTIFICATE")
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "%s: %w", file, err)
	}
	return cert, nil
}

// readPEM returns the first block of one of the kinds.
func readPEM(file string, kinds ...string) (*pem.Block, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "%w", err)
	}
	for {
		block, rest := pem.Decode(data)
		switch {
		case block == nil:
			return nil, drover.Errorf(drover.Invalid, "%s holds no %s", file, strings.ToLower(kinds[0]))
		case slices.Contains(kinds, block.Type):
			return block, nil
		}
		data = rest
	}
}
