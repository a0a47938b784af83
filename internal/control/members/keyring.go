package members

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"

	"github.com/drover-project/drover"
)

// Keys is which gossip keys the servers have, by key in base64: how many of them, and for how many it is the one that
// they encrypt with.
type Keys struct {
	Servers   int // that were asked
	Keys      map[string]int
	Primaries map[string]int
	Messages  map[string]string // what servers complained of, by name
}

// Keyring is the gossip keys that this server has. They change while servers gossip with it. A nil one is gossip in clear text.
type Keyring struct{ ring *memberlist.Keyring }

// OpenKeyring returns the keys that were kept in dataDir, or one of the configured key. It returns nil if there is neither.
// Errors: Invalid with what is wrong with the key or the file.
func OpenKeyring(dataDir, key string) (*Keyring, error) {
	path, err := keyringFile(dataDir)
	if err != nil {
		return nil, err
	}
	ring, err := openKeyring(path, key)
	if ring == nil {
		return nil, err
	}
	return &Keyring{ring}, nil
}

// Secrets returns the keys in base64, the one that this server encrypts with first; none in clear text.
func (k *Keyring) Secrets() (out []string) {
	if k == nil {
		return nil
	}
	for _, key := range k.ring.GetKeys() {
		out = append(out, base64.StdEncoding.EncodeToString(key))
	}
	return out
}

// keys is the keyring as the library takes one.
func (k *Keyring) keys() *memberlist.Keyring {
	if k == nil {
		return nil
	}
	return k.ring
}

// keyringFile is where the library keeps the keys; "" without a folder.
func keyringFile(dataDir string) (string, error) {
	if dataDir == "" {
		return "", nil
	}
	dir := filepath.Join(dataDir, folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the folder of members: %w", err)
	}
	return filepath.Join(dir, "keyring"), nil
}

func openKeyring(path, key string) (*memberlist.Keyring, error) {
	if path != "" {
		text, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, fmt.Errorf("reading the gossip keys: %w", err)
		default:
			return parseKeyring(path, text)
		}
	}
	if key == "" {
		return nil, nil // no keyring is what the library takes for gossip in clear text
	}
	secret, err := decodeKey(key)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "server.encrypt: %w", err)
	}
	ring, err := memberlist.NewKeyring(nil, secret)
	if err != nil || path == "" {
		return ring, err
	}
	text, err := json.Marshal([]string{key})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, fmt.Errorf("keeping the gossip key: %w", err)
	}
	return ring, nil
}

// parseKeyring reads the file that the library writes: the keys in base64, the one to encrypt with first.
func parseKeyring(path string, text []byte) (*memberlist.Keyring, error) {
	var list []string
	if err := json.Unmarshal(text, &list); err != nil || len(list) == 0 {
		return nil, drover.Errorf(drover.Invalid, "the gossip keys in %s are damaged: remove the file, and server.encrypt is used again", path)
	}
	var keys [][]byte
	for _, one := range list {
		secret, err := decodeKey(one)
		if err != nil {
			return nil, drover.Errorf(drover.Invalid, "the gossip keys in %s are damaged: %w", path, err)
		}
		keys = append(keys, secret)
	}
	return memberlist.NewKeyring(keys, keys[0])
}

func decodeKey(key string) ([]byte, error) {
	secret, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "a gossip key is base64 of 16, 24 or 32 bytes: %w", err)
	}
	if !slices.Contains([]int{16, 24, 32}, len(secret)) {
		return nil, drover.Errorf(drover.Invalid, "a gossip key is base64 of 16, 24 or 32 bytes, got %d bytes", len(secret))
	}
	return secret, nil
}

// Encrypted reports whether gossip is encrypted.
func (m *Members) Encrypted() bool { return m.serf.EncryptionEnabled() }

// ListKeys asks all servers for their keys. Errors: Invalid if gossip is not encrypted; Unavailable if some did not answer.
func (m *Members) ListKeys() (Keys, error) { return m.keys("", (*serf.KeyManager).ListKeys) }

// InstallKey gives all servers a key that they understand from then on. Errors: Invalid; Unavailable if some did not take it.
func (m *Members) InstallKey(key string) (Keys, error) {
	return m.keys(key, func(k *serf.KeyManager) (*serf.KeyResponse, error) { return k.InstallKey(key) })
}

// UseKey has all servers encrypt with a key that they all have. Errors: as of InstallKey.
func (m *Members) UseKey(key string) (Keys, error) {
	return m.keys(key, func(k *serf.KeyManager) (*serf.KeyResponse, error) { return k.UseKey(key) })
}

// RemoveKey has all servers forget a key that none of them encrypts with. Errors: as of InstallKey.
func (m *Members) RemoveKey(key string) (Keys, error) {
	return m.keys(key, func(k *serf.KeyManager) (*serf.KeyResponse, error) { return k.RemoveKey(key) })
}

// keyTries is how often servers are asked about keys while some do not answer, each time for about three seconds.
const keyTries = 3

// insist asks again while servers do not answer and none refuses: questions and answers go by UDP, where one may be lost, and what
// is asked twice is done once.
func insist(ask func() (*serf.KeyResponse, error)) (r *serf.KeyResponse, err error) {
	for range keyTries {
		r, err = ask()
		if err == nil || r == nil || r.NumErr > 0 || r.NumResp == r.NumNodes {
			break
		}
	}
	return r, err
}

// keys asks all servers, and reports whatever they said even beside an error.
func (m *Members) keys(key string, ask func(*serf.KeyManager) (*serf.KeyResponse, error)) (Keys, error) {
	if !m.Encrypted() {
		return Keys{}, drover.Errorf(drover.Invalid, "gossip is not encrypted: set server.encrypt on all servers and start them again")
	}
	if key != "" {
		if _, err := decodeKey(key); err != nil {
			return Keys{}, err
		}
	}
	r, err := insist(func() (*serf.KeyResponse, error) { return ask(m.serf.KeyManager()) })
	if r == nil {
		return Keys{}, drover.Errorf(drover.Unavailable, "asking for the gossip keys: %w", err)
	}
	out := Keys{Servers: r.NumNodes, Keys: r.Keys, Primaries: r.PrimaryKeys, Messages: r.Messages}
	if err != nil {
		for _, name := range slices.Sorted(maps.Keys(r.Messages)) {
			err = fmt.Errorf("%w; %s: %s", err, name, r.Messages[name])
		}
		return out, drover.Errorf(drover.Unavailable, "gossip keys: %w", err)
	}
	return out, nil
}
