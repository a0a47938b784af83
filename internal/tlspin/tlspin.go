package tlspin

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"github.com/drover-project/drover"
)

// separator stands between a join token's secret and its pin.
const separator = "@" + prefix

const prefix = "sha256:"

// Of returns the pin of an authority: "sha256:" and the hash of its public key, in hex.
func Of(authority *x509.Certificate) string {
	sum := sha256.Sum256(authority.RawSubjectPublicKeyInfo)
	return prefix + hex.EncodeToString(sum[:])
}

// Join returns the token of a secret and a pin, which may be "".
func Join(secret, pin string) string {
	if pin == "" {
		return secret
	}
	return secret + "@" + pin
}

// Split returns the secret and the pin of a token; the pin is "" if it has none. Errors: Invalid for a pin that is none, as half of one
// that was copied.
func Split(token string) (secret, pin string, err error) {
	at := strings.LastIndex(token, separator)
	if at < 0 {
		return token, "", nil
	}
	secret, pin = token[:at], strings.ToLower(token[at+1:])
	sum, err := hex.DecodeString(strings.TrimPrefix(pin, prefix))
	if err != nil || len(sum) != sha256.Size {
		return "", "", drover.Errorf(drover.Invalid, "the join token names an authority by %d characters after %q, not by the 64 of a hash: "+
			"copy it whole", len(pin)-len(prefix), separator)
	}
	return secret, pin, nil
}

// Mismatch says that a server has another authority than the pin names. The other may be an impostor.
type Mismatch struct{ Want, Got string }

// Error implements error.
func (m *Mismatch) Error() string {
	return fmt.Sprintf("the server's authority is %s, and the join token names %s: another server answers there, or this one was made anew; "+
		"give the node the token of the file join-token in the server's data_dir, if that is the server that is meant", m.Got, m.Want)
}

// Discover returns the authority that a server shows beside its certificate, in PEM, if it has the pin and has certified the
// server for the name. shown are the server's certificates, its own first. Errors: Unauthorized; a *Mismatch is in it if that is
// why.
func Discover(shown []*x509.Certificate, pin, name string, now time.Time) (string, error) {
	var authority *x509.Certificate
	for _, c := range shown {
		if c.IsCA && Of(c) == pin {
			authority = c
		}
	}
	if authority == nil {
		got := "none that it shows"
		if n := len(shown); n > 0 && shown[n-1].IsCA {
			got = Of(shown[n-1])
		}
		return "", drover.Errorf(drover.Unauthorized, "%w", &Mismatch{pin, got})
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	leaf := shown[0]
	if err := InTime(leaf, now); err != nil {
		return "", err
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: roots, DNSName: name, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return "", drover.Errorf(drover.Unauthorized, "the server's certificate is not one of its authority for %s, as region is here: %w",
			name, err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw})), nil
}

// Look is how often agents look whether a certificate is due. A machine that was suspended, or whose clock was set, does not wait longer.
const Look = time.Hour

// Due reports whether a certificate has come to half of its time, or is not good yet, as the clock was set back.
func Due(cert *x509.Certificate, now time.Time) bool {
	half := cert.NotBefore.Add(cert.NotAfter.Sub(cert.NotBefore) / 2)
	return now.Before(cert.NotBefore) || !now.Before(half)
}

// InTime says what is wrong with the time of a certificate, or with the clock. Errors: Unavailable, as both pass.
func InTime(cert *x509.Certificate, now time.Time) error {
	if !now.Before(cert.NotBefore) && !now.After(cert.NotAfter) {
		return nil
	}
	when := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	return drover.Errorf(drover.Unavailable, "the certificate is good from %s to %s, and this machine's clock says %s: set the clock that is "+
		"wrong, the server's or this one", when(cert.NotBefore), when(cert.NotAfter), when(now))
}
