package cluster

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
)

// MaxRevocations is how many revocations a cluster has at most.
const MaxRevocations = 10_000

// What the id of a revocation begins with.
const (
	revokedNode        = "node:"   // all that names the node, of whatever key
	revokedSerial      = "serial:" // the serial number in lower case hexadecimal, without zeros before it
	revokedFingerprint = "sha256:" // of the certificate's bytes
)

// nodeRevoked is how long a node is refused if nobody says otherwise: longer than any certificate that servers give.
const nodeRevoked = 400 * 24 * time.Hour

// Revocation is a certificate that all servers refuse, or a node of which they refuse everything.
type Revocation struct {
	ID         string // node:ID, serial:HEX or sha256:HEX
	Subject    string // the name that stands in the certificate; "" = it is not known
	Reason     string // what a person said
	CreateTime int64  // UnixNano
	ExpireTime int64  // UnixNano, when it is forgotten; 0 = when somebody takes it back

	CreateIndex uint64
	ModifyIndex uint64
}

// Expired reports whether the certificate has ended by itself at now.
func (r *Revocation) Expired(now time.Time) bool {
	return r.ExpireTime > 0 && now.UnixNano() >= r.ExpireTime
}

// RevokeRequest asks for a revocation: of what ID names, or of a certificate. That of a node names the node, and all of it is refused:
// who has the certificate's key has what gets another one, too.
type RevokeRequest struct {
	ID          string // node:ID, serial:NUMBER or sha256:HEX; "" = as Certificate says
	Certificate string // PEM, of one; "" = as ID says
	Reason      string // at most 256 bytes
	ExpireTime  int64  // UnixNano; 0 = that of Certificate, 400 days of a node, else until somebody takes it back
}

// mostReason bounds what a person says, in bytes; mostNamed what is named.
const (
	mostReason = 256
	mostNamed  = 256
)

// Revocation is what the request asks for. Errors: Invalid, with the field.
func (q RevokeRequest) Revocation(now time.Time) (*Revocation, error) {
	r := &Revocation{ID: q.ID, Reason: q.Reason, CreateTime: now.UnixNano(), ExpireTime: q.ExpireTime}
	switch {
	case (q.ID == "") == (q.Certificate == ""):
		return nil, drover.Errorf(drover.Invalid, "ID, Certificate: set one of them")
	case len(q.Reason) > mostReason:
		return nil, drover.Errorf(drover.Invalid, "Reason: has %d bytes, the limit is %d", len(q.Reason), mostReason)
	}
	if q.Certificate != "" {
		block, _ := pem.Decode([]byte(q.Certificate)) // the authority's and the key may follow
		if block == nil || block.Type != "CERTIFICATE" {
			return nil, drover.Errorf(drover.Invalid, "Certificate: is no certificate in PEM")
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, drover.Errorf(drover.Invalid, "Certificate: %w", err)
		}
		if cert.IsCA {
			return nil, drover.Errorf(drover.Invalid, "Certificate: is the authority %q: an authority is not revoked but replaced at all agents",
				cert.Subject.CommonName)
		}
		r.ID, r.Subject = RevokedBy(cert)[0], cert.Subject.CommonName
		if r.ExpireTime == 0 && !strings.HasPrefix(r.ID, revokedNode) {
			r.ExpireTime = cert.NotAfter.UnixNano()
		}
	}
	var err error
	if r.ID, err = canonicalRevocation(r.ID); err != nil {
		return nil, err
	}
	if r.ExpireTime == 0 && strings.HasPrefix(r.ID, revokedNode) {
		r.ExpireTime = now.Add(nodeRevoked).UnixNano()
	}
	if r.ExpireTime != 0 && r.Expired(now) {
		return nil, drover.Errorf(drover.Invalid, "ExpireTime: the certificate has ended on %s, nobody takes it any more",
			time.Unix(0, r.ExpireTime).UTC().Format(time.RFC3339))
	}
	return r, nil
}

// canonicalRevocation is the one way to write the id. Errors: Invalid.
func canonicalRevocation(id string) (string, error) {
	switch kind, value, _ := strings.Cut(id, ":"); kind + ":" {
	case revokedNode:
		if value == "" || len(value) > mostNamed || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' }) {
			return "", drover.Errorf(drover.Invalid, "ID: node:%q names no node: write its whole id", value)
		}
		return id, nil
	case revokedSerial:
		n, ok := serialNumber(value)
		if !ok {
			return "", drover.Errorf(drover.Invalid, "ID: %q is no serial number: write it in decimal, or in hexadecimal as 0x… or aa:bb:…", value)
		}
		return revokedSerial + n.Text(16), nil
	case revokedFingerprint:
		text := strings.ToLower(strings.ReplaceAll(value, ":", ""))
		if b, err := hex.DecodeString(text); err != nil || len(b) != sha256.Size {
			return "", drover.Errorf(drover.Invalid, "ID: %q is no SHA-256 of a certificate: it has 64 hexadecimal digits", value)
		}
		return revokedFingerprint + text, nil
	}
	return "", drover.Errorf(drover.Invalid, "ID: %q names neither node:ID, nor serial:NUMBER, nor sha256:HEX", id)
}

// serialNumber reads a serial number as people have it: decimal as "drover tls cert info", hexadecimal as openssl.
func serialNumber(text string) (*big.Int, bool) {
	if len(text) > mostNamed {
		return nil, false
	}
	base, digits := 10, strings.ToLower(text)
	if hexed, ok := strings.CutPrefix(digits, "0x"); ok {
		base, digits = 16, hexed
	} else if strings.ContainsAny(digits, ":abcdef") {
		base, digits = 16, strings.ReplaceAll(digits, ":", "")
	}
	n, ok := new(big.Int).SetString(digits, base)
	return n, ok && n.Sign() > 0 && !strings.ContainsAny(digits, "+_")
}

// RevokedBy returns the ids of revocations that are against the certificate, the first of which is how it is revoked. A certificate that
// servers gave to a node has its id as its name, and no others.
func RevokedBy(c *x509.Certificate) []string {
	sum := sha256.Sum256(c.Raw)
	out := []string{revokedFingerprint + hex.EncodeToString(sum[:]), revokedSerial + c.SerialNumber.Text(16)}
	name := c.Subject.CommonName
	client := slices.Equal(c.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth})
	if name != "" && client && len(c.DNSNames)+len(c.IPAddresses) == 0 {
		out = append([]string{RevokedNode(name)}, out...)
	}
	return out
}

// RevokedNode is the id of the revocation of a node.
func RevokedNode(nodeID string) string { return revokedNode + nodeID }

// Refusal is what is said to who is refused; the reason is for others. Its code is Unauthorized.
func (r *Revocation) Refusal() error {
	return drover.Errorf(drover.Unauthorized, `%s is revoked: "drover tls cert reinstate %s" takes that back`, r.ID, r.ID)
}
