package transit

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/drover-project/drover"
)

// Config says where the service is.
type Config struct {
	Label     string // of its keyring block; may be ""
	Address   string // https://host:8200
	Token     string // that it knows this server by
	Namespace string // of Vault's; "" = the root one
	Mount     string // path of the engine; default "transit"
	Key       string // name of the key-encryption key
	TLS       *tls.Config
}

// Transit is a keyring.Wrapper.
type Transit struct {
	cfg    Config
	client *http.Client
}

// maxAnswer bounds what is read of an answer, in bytes: a wrapped root key has some thousand.
const maxAnswer = 1 << 20

// New returns a Transit; it asks nobody yet.
func New(cfg Config) *Transit {
	if cfg.Mount = strings.Trim(cfg.Mount, "/"); cfg.Mount == "" {
		cfg.Mount = "transit"
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = cfg.TLS
	return &Transit{cfg, &http.Client{
		Transport: transport,
		// The token would go with it.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Provider implements keyring.Wrapper.
func (t *Transit) Provider() string { return "transit" }

// Name implements keyring.Wrapper.
func (t *Transit) Name() string { return t.cfg.Label }

// Wrap implements keyring.Wrapper: the service chooses the version of its key.
func (t *Transit) Wrap(ctx context.Context, plain []byte, _ string) (keyID string, ciphertext []byte, err error) {
	var out struct {
		Ciphertext string `json:"ciphertext"`
	}
	if err := t.call(ctx, "encrypt", map[string]any{"plaintext": plain}, &out); err != nil {
		return "", nil, err
	}
	if out.Ciphertext == "" {
		return "", nil, drover.Errorf(drover.Unavailable, "keyring transit: the service answered without a ciphertext")
	}
	return t.cfg.Key, []byte(out.Ciphertext), nil
}

// Unwrap implements keyring.Wrapper.
func (t *Transit) Unwrap(ctx context.Context, keyID string, ciphertext []byte) ([]byte, error) {
	if keyID != t.cfg.Key {
		return nil, drover.Errorf(drover.NotFound, "keyring transit: it was wrapped with key %q, and key_name is %q", keyID, t.cfg.Key)
	}
	var out struct {
		Plaintext []byte `json:"plaintext"`
	}
	err := t.call(ctx, "decrypt", map[string]any{"ciphertext": string(ciphertext)}, &out)
	return out.Plaintext, err
}

// call makes one of the two calls. Errors: Unavailable, with what the service says; nothing that was sent is in them.
func (t *Transit) call(ctx context.Context, verb string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return drover.Errorf(drover.Internal, "keyring transit: %w", err)
	}
	at := strings.TrimRight(t.cfg.Address, "/") + "/v1/" + t.cfg.Mount + "/" + verb + "/" + url.PathEscape(t.cfg.Key)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return drover.Errorf(drover.Invalid, "keyring transit: address: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Vault-Request", "true")
	if t.cfg.Token != "" {
		r.Header.Set("X-Vault-Token", t.cfg.Token)
	}
	if t.cfg.Namespace != "" {
		r.Header.Set("X-Vault-Namespace", t.cfg.Namespace)
	}
	resp, err := t.client.Do(r)
	if err != nil {
		return drover.Errorf(drover.Unavailable, "keyring transit: %w", err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return drover.Errorf(drover.Unavailable, "keyring transit: reading the answer of %s: %w", t.cfg.Address, err)
	}
	if resp.StatusCode != http.StatusOK {
		var told struct {
			Errors []string `json:"errors"`
		}
		_ = json.Unmarshal(data, &told) // the status says it, too
		return drover.Errorf(drover.Unavailable, "keyring transit: %s answers %s to %s with key %q: %s",
			t.cfg.Address, resp.Status, verb, t.cfg.Key, strings.Join(told.Errors, "; "))
	}
	var answer struct {
		Data json.RawMessage `json:"data"`
	}
	if err = json.Unmarshal(data, &answer); err == nil {
		err = json.Unmarshal(answer.Data, out)
	}
	if err != nil {
		return drover.Errorf(drover.Unavailable, "keyring transit: %s answers %s with something else than the transit engine",
			t.cfg.Address, verb)
	}
	return nil
}
