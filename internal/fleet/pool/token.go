package pool

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

// Token is what a machine's agent shows when it first calls home: bound to one intent, worthless for another.
func Token(key []byte, intent string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("drover-fleet\x00" + intent))
	return intent + "." + hex.EncodeToString(mac.Sum(nil))
}

// IntentOf checks a token and returns its intent; that it is used once is Core.Registered's concern.
// Errors: Unauthorized.
func IntentOf(key []byte, token string) (string, error) {
	intent, _, ok := strings.Cut(token, ".")
	if !ok || !hmac.Equal([]byte(Token(key, intent)), []byte(token)) {
		return "", drover.Errorf(drover.Unauthorized, "the token is not one of this fleet's")
	}
	return intent, nil
}

// UserData fills ${token} and ${intent} into the policy's user data.
func UserData(key []byte) func(*fleet.Policy, string) string {
	return func(p *fleet.Policy, intent string) string {
		return strings.NewReplacer("${token}", Token(key, intent), "${intent}", intent).Replace(p.UserData)
	}
}
