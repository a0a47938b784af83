package claims

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

func signedAs(t *testing.T, kind string, alg jose.SignatureAlgorithm, key any, id string, v any) string {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: id}},
		(&jose.SignerOptions{}).WithType(jose.ContentType(kind)))
	require.NoError(t, err)
	payload, err := json.Marshal(v)
	require.NoError(t, err)
	object, err := s.Sign(payload)
	require.NoError(t, err)
	text, err := object.CompactSerialize()
	require.NoError(t, err)
	return text
}

// TestReceipts: what one of the keys signed is read, of any age; what was changed, or signed by others or for something else, is not.
func TestReceipts(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	foreign, stranger, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	keys := []jose.JSONWebKey{
		{Key: other.Public(), KeyID: "new", Algorithm: "RS256", Use: "sig"},
		{Key: foreign, KeyID: "new-ed", Algorithm: "EdDSA", Use: "sig"},
		{Key: public, KeyID: "old-ed", Algorithm: "EdDSA", Use: "sig"},
	}
	st := Receipt(Stamp{Issuer: "https://i", Region: "global", Now: now}, execution.Statement{
		Execution: "x1", Runner: "r1", Environment: "e", Argv: []string{"make", "test"},
		Receipt: execution.Receipt{ExecutionID: "x1", ExitCode: 1, Cause: execution.CauseExited, StdoutBytes: 7},
	})
	token := signedAs(t, ReceiptType, jose.EdDSA, private, "old-ed", st)
	got, key, err := VerifyReceipt(token, keys)
	require.NoError(t, err)
	require.Equal(t, &st, got)
	require.Equal(t, "execution:global:x1", got.Subject)
	require.Equal(t, now.Unix(), got.IssuedAt)
	require.Equal(t, "old-ed", key)

	parts := strings.Split(token, ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	require.NoError(t, err)
	better := base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(payload), `"exitCode":1`, `"exitCode":0`, 1)))
	unprotected := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"` + ReceiptType + `","kid":"old-ed"}`))
	for what, c := range map[string]struct{ token, want string }{
		"changed":          {parts[0] + "." + better + "." + parts[2], "the signature is not that of key old-ed"},
		"cut":              {parts[0] + "." + parts[1] + ".", "the signature is not that of key old-ed"},
		"unsigned":         {unprotected + "." + better + ".", "it is no JSON web signature"},
		"another's":        {signedAs(t, ReceiptType, jose.EdDSA, stranger, "old-ed", st), "the signature is not that of key old-ed"},
		"unknown key":      {signedAs(t, ReceiptType, jose.EdDSA, private, "gone", st), `key "gone" is none of the 3 that are published`},
		"identity":         {signedAs(t, "JWT", jose.EdDSA, private, "old-ed", st), `its type is "JWT"`},
		"another's rsa":    {signedAs(t, ReceiptType, jose.RS256, other, "new", st), "it is no JSON web signature in compact form with EdDSA"},
		"no object":        {signedAs(t, ReceiptType, jose.EdDSA, private, "old-ed", "text"), "what was signed is no statement"},
		"nothing":          {"", "it is no JSON web signature"},
		"more than enough": {strings.Repeat("x", maxReceipt+1), "it is longer than"},
	} {
		_, _, err := VerifyReceipt(c.token, keys)
		require.ErrorContains(t, err, "the receipt is not verified: "+c.want, what)
		require.Equal(t, drover.Forbidden, drover.CodeOf(err), what)
	}
	_, err = Verify(token, keys)
	require.ErrorIs(t, err, ErrMalformed, "a receipt is nobody's identity")
}
