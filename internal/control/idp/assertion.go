package idp

import (
	"cmp"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"os"

	"github.com/hashicorp/cap/oidc/clientassertion"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
)

// assertionType says that a signature stands in the place of a client's secret (RFC 7523).
const assertionType = clientassertion.JWTTypeParam

// maxKeyFile bounds what is read of a key's file.
const maxKeyFile = 64 << 10

// assertion is a signed statement to the provider that it is this client who asks. Errors: Internal, without the key.
func assertion(m *acl.AuthMethod) (string, error) {
	a, c := m.Config.OIDCClientAssertion, m.Config
	to := a.Audience
	if len(to) == 0 {
		to = []string{c.OIDCDiscoveryURL}
	}
	options := []clientassertion.Option{}
	if len(a.ExtraHeaders) > 0 {
		options = append(options, clientassertion.WithHeaders(a.ExtraHeaders))
	}
	var signer *clientassertion.JWT
	var err error
	if a.KeySource == acl.KeyOfSecret {
		signer, err = clientassertion.NewJWTWithHMAC(c.OIDCClientID, to,
			clientassertion.HSAlgorithm(cmp.Or(a.KeyAlgorithm, "HS256")), string(c.OIDCClientSecret), options...)
	} else {
		var key *rsa.PrivateKey
		var name clientassertion.Option
		if key, name, err = privateKey(a.PrivateKey); err == nil {
			signer, err = clientassertion.NewJWTWithRSAKey(c.OIDCClientID, to,
				clientassertion.RSAlgorithm(cmp.Or(a.KeyAlgorithm, "RS256")), key, append(options, name)...)
		}
	}
	if err != nil {
		return "", drover.Errorf(drover.Internal, "auth-method %q: its client assertion: %w", m.Name, err)
	}
	return signer.Serialize()
}

// privateKey reads the key, and the header by which the provider finds it.
func privateKey(k *acl.ClientAssertionKey) (*rsa.PrivateKey, clientassertion.Option, error) {
	text, err := given(string(k.PemKey), k.PemKeyFile)
	if err != nil {
		return nil, nil, err
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, nil, drover.Errorf(drover.Invalid, "the key is no PEM")
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		other, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		rsaKey, ok := other.(*rsa.PrivateKey)
		if err != nil || !ok {
			return nil, nil, drover.Errorf(drover.Invalid, "the key is no RSA key")
		}
		key = rsaKey
	}
	if k.KeyID != "" {
		return key, clientassertion.WithKeyID(k.KeyID), nil
	}
	if text, err = given(k.PemCert, k.PemCertFile); err != nil {
		return nil, nil, err
	}
	if block, _ = pem.Decode([]byte(text)); block == nil {
		return nil, nil, drover.Errorf(drover.Invalid, "the certificate is no PEM")
	}
	header, sum := "x5t#S256", sha256.Sum256(block.Bytes)
	value := base64.RawURLEncoding.EncodeToString(sum[:])
	if k.KeyIDHeader == "x5t" {
		short := sha1.Sum(block.Bytes) // x5t is that by RFC 7515: a name, which guards nothing
		header, value = "x5t", base64.RawURLEncoding.EncodeToString(short[:])
	}
	return key, clientassertion.WithHeaders(map[string]string{header: value}), nil
}

// given is the text, or that of the file on this server. Errors say nothing of what is in it.
func given(text, file string) (string, error) {
	if file == "" {
		return text, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was read
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	return string(data), err
}
