package claims

import (
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/drover-project/drover"
)

// MaxToken is the longest token that is read, in bytes.
const MaxToken = 8 << 10

// The refusals say nothing of what a token says.
var (
	ErrMalformed = drover.Errorf(drover.Forbidden, "the identity is not a token that this cluster signed")
	ErrExpired   = drover.Errorf(drover.Forbidden, "the identity has expired, or is not valid yet")
)

// Looks reports whether the text has the form of a signed token: nothing else is worth the work of a verification.
func Looks(text string) bool {
	return len(text) <= MaxToken && strings.HasPrefix(text, "ey") && strings.Count(text, ".") == 2
}

// Verify reads a token that one of the keys signed. Times are for Check. Errors: ErrMalformed.
func Verify(token string, keys []jose.JSONWebKey) (*Claims, error) {
	if !Looks(token) {
		return nil, ErrMalformed
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.RS256, jose.EdDSA})
	if err != nil || len(parsed.Headers) != 1 || parsed.Headers[0].KeyID == "" {
		return nil, ErrMalformed
	}
	if parsed.Headers[0].ExtraHeaders[jose.HeaderType] == ReceiptType {
		return nil, ErrMalformed
	}
	for i := range keys {
		k := &keys[i]
		if k.KeyID != parsed.Headers[0].KeyID || k.Algorithm != "" && k.Algorithm != parsed.Headers[0].Algorithm {
			continue
		}
		var c Claims
		if err := parsed.Claims(k.Key, &c); err != nil {
			return nil, ErrMalformed
		}
		return &c, nil
	}
	return nil, ErrMalformed
}

// Check reports whether the token is valid at the time, with a leeway for clocks that differ. Errors: ErrExpired.
func (c *Claims) Check(now time.Time, leeway time.Duration) error {
	if c.Expiry != nil && now.Add(-leeway).After(c.Expiry.Time()) {
		return ErrExpired
	}
	if c.NotBefore != nil && now.Add(leeway).Before(c.NotBefore.Time()) {
		return ErrExpired
	}
	return nil
}

// Life returns when a token was made and when it ends, without looking at its signature: for who has it from a server. end is zero for one
// without an end.
func Life(token string) (made, end time.Time, err error) {
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.RS256, jose.EdDSA})
	if err != nil {
		return made, end, ErrMalformed
	}
	var c jwt.Claims
	if err := parsed.UnsafeClaimsWithoutVerification(&c); err != nil {
		return made, end, ErrMalformed
	}
	if c.IssuedAt != nil {
		made = c.IssuedAt.Time()
	}
	if c.Expiry != nil {
		end = c.Expiry.Time()
	}
	return made, end, nil
}
