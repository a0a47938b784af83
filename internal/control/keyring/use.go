package keyring

import (
	"context"
	"encoding/json"

	"github.com/go-jose/go-jose/v4"

	"github.com/drover-project/drover"
)

// Signer signs what others are to believe; *Keyring satisfies it on every server.
type Signer interface {
	// Sign signs the claims, which must be a JSON object, as a JSON web token with RS256. It returns the id of the key that it used.
	// Errors: Unavailable while no key can be used, with why; Invalid for the claims.
	Sign(ctx context.Context, claims any) (token string, keyID string, err error)
	// PublicKeys are those that tokens are verified with: of all root keys that are known, the active one's first.
	PublicKeys() []jose.JSONWebKey
}

var _ Signer = (*Keyring)(nil)

// Sign implements Signer.
func (k *Keyring) Sign(ctx context.Context, claims any) (token, keyID string, err error) {
	payload, err := json.Marshal(claims)
	if err != nil || len(payload) == 0 || payload[0] != '{' {
		return "", "", drover.Errorf(drover.Invalid, "claims must be a JSON object")
	}
	return k.SignBytes(ctx, jose.RS256, "JWT", payload)
}

// SignBytes signs the payload as a compact JWS of the type, with RS256 or EdDSA. Errors: Unavailable, Invalid for another algorithm.
func (k *Keyring) SignBytes(ctx context.Context, alg jose.SignatureAlgorithm, typ string, payload []byte) (token, keyID string, err error) {
	o, err := k.active(ctx)
	if err != nil {
		return "", "", err
	}
	key := jose.JSONWebKey{KeyID: o.id, Algorithm: string(alg), Use: "sig"}
	switch alg {
	case jose.RS256:
		key.Key = o.rsa
	case jose.EdDSA:
		key.Key, key.KeyID = o.ed, ed25519ID(o.id)
	default:
		return "", "", drover.Errorf(drover.Invalid, "the keyring signs with RS256 and EdDSA, not %s", alg)
	}
	options := &jose.SignerOptions{}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, options.WithType(jose.ContentType(typ)))
	if err != nil {
		return "", "", drover.Errorf(drover.Internal, "signing: %w", err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", "", drover.Errorf(drover.Internal, "signing: %w", err)
	}
	token, err = signed.CompactSerialize()
	return token, key.KeyID, err
}

// PublicKeys implements Signer.
func (k *Keyring) PublicKeys() []jose.JSONWebKey {
	s := k.deps.Store.Snapshot()
	active, keys := activeOf(s), []jose.JSONWebKey{}
	if active != nil {
		keys = append(keys, webKeys(active)...)
	}
	for row := range s.RootKeys() {
		if row != active {
			keys = append(keys, webKeys(row)...)
		}
	}
	return keys
}

// Seal encrypts with the active key. The text can only be opened for the same purpose. Errors: Unavailable.
func (k *Keyring) Seal(ctx context.Context, plain []byte, purpose string) (keyID string, text []byte, err error) {
	o, err := k.active(ctx)
	if err != nil {
		return "", nil, err
	}
	return o.id, o.aead.Seal(nil, nil, plain, bound(o.id, purpose)), nil
}

// Open decrypts what Seal returned. Errors: Unavailable if the key cannot be used here, Internal if the text is damaged.
func (k *Keyring) Open(ctx context.Context, keyID string, text []byte, purpose string) ([]byte, error) {
	o, err := k.byID(ctx, keyID)
	if err != nil {
		return nil, err
	}
	plain, err := o.aead.Open(nil, nil, text, bound(keyID, purpose))
	if err != nil {
		return nil, drover.Errorf(drover.Internal, "what root key %s encrypted is damaged, or was encrypted for something else", keyID)
	}
	return plain, nil
}

func bound(keyID, purpose string) []byte { return []byte(keyID + "\x00" + purpose) }
