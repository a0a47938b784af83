package kms

import (
	"cmp"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/drover-project/drover"
)

// Google says which key of Google Cloud KMS wraps.
type Google struct {
	Project, Region, KeyRing, CryptoKey string
	// Credentials are a service account's key, as JSON; nil = the machine's account, of the metadata service.
	Credentials []byte
	Endpoint    string // URL of the service; "" = https://cloudkms.googleapis.com
	Metadata    string // host:port of the metadata service; "" = metadata.google.internal
}

// google speaks Cloud KMS's REST API.
type google struct {
	caller
	bearer
	key string // URL of the key
	id  string // its name in the service
}

// NewGoogle returns a Wrapper; it asks nobody yet. Errors: Invalid for the credentials.
func NewGoogle(cfg Google, deps Deps) (*Wrapper, error) {
	g := &google{caller: newCaller("gcpckms", deps.Clock)}
	g.id = fmt.Sprintf("projects/%s/locations/%s/keyRings/%s/cryptoKeys/%s", url.PathEscape(cfg.Project), url.PathEscape(cfg.Region),
		url.PathEscape(cfg.KeyRing), url.PathEscape(cfg.CryptoKey))
	g.key = cmp.Or(trimmed(cfg.Endpoint), "https://cloudkms.googleapis.com") + "/v1/" + g.id
	if cfg.Credentials == nil {
		at := "http://" + cmp.Or(cfg.Metadata, "metadata.google.internal") + "/computeMetadata/v1/instance/service-accounts/default/token"
		g.fetch = func(context.Context) (request, error) {
			return request{method: http.MethodGet, url: at, header: http.Header{"Metadata-Flavor": {"Google"}}}, nil
		}
		return &Wrapper{"gcpckms", deps.Name, g}, nil
	}
	account, err := readAccount(cfg.Credentials)
	if err != nil {
		return nil, err
	}
	g.fetch = func(context.Context) (request, error) { return account.request(g.clock.Now()) }
	return &Wrapper{"gcpckms", deps.Name, g}, nil
}

func (g *google) wrap(ctx context.Context, key []byte) (string, []byte, error) {
	var out struct {
		Ciphertext []byte `json:"ciphertext"`
		Sum        string `json:"ciphertextCrc32c"`
		Verified   bool   `json:"verifiedPlaintextCrc32c"`
	}
	err := g.ask(ctx, ":encrypt", map[string]any{"plaintext": key, "plaintextCrc32c": castagnoli(key)}, &out)
	if err == nil && (len(out.Ciphertext) == 0 || !out.Verified || out.Sum != castagnoli(out.Ciphertext)) {
		err = damaged()
	}
	return g.id, out.Ciphertext, err
}

func (g *google) unwrap(ctx context.Context, keyID string, wrapped []byte) ([]byte, error) {
	if keyID != g.id {
		return nil, drover.Errorf(drover.NotFound, "keyring gcpckms: it was wrapped with %s, and this block is about %s", keyID, g.id)
	}
	var out struct {
		Plaintext []byte `json:"plaintext"`
		Sum       string `json:"plaintextCrc32c"`
	}
	err := g.ask(ctx, ":decrypt", map[string]any{"ciphertext": wrapped, "ciphertextCrc32c": castagnoli(wrapped)}, &out)
	if err == nil && out.Sum != castagnoli(out.Plaintext) {
		err = damaged()
	}
	return out.Plaintext, err
}

func (g *google) ask(ctx context.Context, verb string, in, out any) error {
	f, err := g.call(ctx, &g.bearer, g.key+verb, in, out)
	if f != nil && f.status == http.StatusNotFound {
		return drover.Errorf(drover.NotFound, "%w", err)
	}
	if f != nil && f.code == "INVALID_ARGUMENT" {
		return drover.Errorf(drover.Invalid, "%w", err)
	}
	return err
}

func damaged() error {
	return drover.Errorf(drover.Unavailable, "keyring gcpckms: what the service answers was damaged on the way, or is not its answer")
}

// castagnoli is a checksum as the service has it: a 64-bit integer in a string.
func castagnoli(data []byte) string {
	return strconv.FormatUint(uint64(crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))), 10)
}

// account is a service account's key.
type account struct {
	email, keyID, tokens string
	key                  *rsa.PrivateKey
}

// readAccount reads the file that Google gives. Errors: Invalid, without a word of the key.
func readAccount(text []byte) (*account, error) {
	var doc struct {
		Type   string `json:"type"`
		Email  string `json:"client_email"`
		KeyID  string `json:"private_key_id"`
		Key    string `json:"private_key"`
		Tokens string `json:"token_uri"`
	}
	if json.Unmarshal(text, &doc) != nil || doc.Type != "service_account" || doc.Email == "" {
		return nil, drover.Errorf(drover.Invalid, `credentials: it must be a service account's key, JSON with "type": "service_account"`)
	}
	block, _ := pem.Decode([]byte(doc.Key))
	if block == nil {
		return nil, drover.Errorf(drover.Invalid, "credentials: private_key is no PEM block")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*rsa.PrivateKey)
	if err != nil || !ok {
		return nil, drover.Errorf(drover.Invalid, "credentials: private_key is no RSA key in PKCS #8")
	}
	return &account{doc.Email, doc.KeyID, cmp.Or(doc.Tokens, "https://oauth2.googleapis.com/token"), key}, nil
}

// request asks for a token with an assertion that the account signs.
func (a *account) request(now time.Time) (request, error) {
	claims, err := json.Marshal(map[string]any{
		"iss": a.email, "scope": "https://www.googleapis.com/auth/cloudkms", "aud": a.tokens,
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	})
	if err != nil {
		return request{}, err
	}
	options := &jose.SignerOptions{}
	signer, err := jose.NewSigner(jose.SigningKey{
		Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: a.key, KeyID: a.keyID},
	}, options.WithType("JWT"))
	if err != nil {
		return request{}, drover.Errorf(drover.Invalid, "keyring gcpckms: credentials: %w", err)
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		return request{}, drover.Errorf(drover.Invalid, "keyring gcpckms: credentials: %w", err)
	}
	assertion, err := signed.CompactSerialize()
	return form(a.tokens, url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}}), err
}
