package keyring

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/aesgcm"
)

// Others gets key-encryption keys from the other servers. Errors: NotFound if none of those that answer has it, with who does not answer.
type Others interface {
	KeyEncryptionKey(ctx context.Context, id string) ([]byte, error)
}

// kekSize is the size of a key-encryption key in bytes: AES-256.
const kekSize = 32

// Files is the wrapper "aead": its key-encryption keys are files of a folder, one each, or one key that the configuration gives. What it
// lacks it asks other servers for, and keeps.
type Files struct {
	name   string
	folder string // "" keeps them in memory
	fixed  string // id of the key that the configuration gives; "" = there is none
	others Others // nil: there are none

	mu   sync.Mutex        // guards what follows; held while a key is made
	keys map[string][]byte // by id
	made string            // id of the key that this server made; "" = none since it started
}

// NewFiles returns a wrapper that keeps its keys in the folder, which is made when it is needed; "" keeps them in memory.
func NewFiles(name, folder string, others Others) *Files {
	return &Files{name: name, folder: folder, others: others, keys: map[string][]byte{}}
}

// NewFixed returns a wrapper with the one key, which all servers are given. It is given away to none. Errors: Invalid.
func NewFixed(name, text string) (*Files, error) {
	key, err := ParseKey(text)
	if err != nil {
		return nil, err
	}
	id := kekID(key)
	return &Files{name: name, fixed: id, keys: map[string][]byte{id: key}}, nil
}

// ParseKey reads a key-encryption key: 32 bytes in base64 or hexadecimal. Errors: Invalid, without the text.
func ParseKey(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	key, err := hex.DecodeString(text)
	if err != nil {
		if key, err = base64.StdEncoding.DecodeString(text); err != nil {
			key, err = base64.RawURLEncoding.DecodeString(text)
		}
	}
	if err != nil || len(key) != kekSize {
		return nil, drover.Errorf(drover.Invalid, "it must be %d random bytes in base64 or hexadecimal, as `openssl rand -base64 %d` prints them",
			kekSize, kekSize)
	}
	return key, nil
}

// kekID names a key by its digest, which says nothing of it.
func kekID(key []byte) string {
	sum := sha256.Sum256(append([]byte("drover key-encryption key\x00"), key...))
	return hex.EncodeToString(sum[:8])
}

// Provider implements Wrapper.
func (f *Files) Provider() string { return "aead" }

// Name implements Wrapper.
func (f *Files) Name() string { return f.name }

// Wrap implements Wrapper. Where it has no key it makes one, and it is on the disk before it is used.
func (f *Files) Wrap(ctx context.Context, plain []byte, preferred string) (id string, ciphertext []byte, err error) {
	if f.fixed != "" {
		preferred = f.fixed
	}
	var key []byte
	if preferred != "" {
		key, err = f.find(ctx, preferred)
	}
	if preferred == "" || err != nil { // any key will do
		preferred, key, err = f.make()
	}
	if err != nil {
		return "", nil, err
	}
	aead, err := aesgcm.New(key)
	if err != nil {
		return "", nil, err
	}
	return preferred, aead.Seal(nil, nil, plain, []byte(preferred)), nil
}

// Unwrap implements Wrapper.
func (f *Files) Unwrap(ctx context.Context, id string, ciphertext []byte) ([]byte, error) {
	key, err := f.find(ctx, id)
	if err != nil {
		return nil, err
	}
	aead, err := aesgcm.New(key)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nil, ciphertext, []byte(id))
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "what was wrapped is damaged: key-encryption key %s does not open it", id)
	}
	return plain, nil
}

// Own returns a key that this server has, for another server. Errors: NotFound, also for the one that the configuration gives.
func (f *Files) Own(id string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id == f.fixed {
		return nil, absent(id)
	}
	return f.own(id)
}

func absent(id string) error {
	return drover.Errorf(drover.NotFound, "this server has no key-encryption key %s", id)
}

// own finds a key in memory or in the folder; f.mu is held.
func (f *Files) own(id string) ([]byte, error) {
	if key := f.keys[id]; key != nil {
		return key, nil
	}
	if f.folder == "" || f.fixed != "" || id != filepath.Base(id) {
		return nil, absent(id)
	}
	text, err := os.ReadFile(f.path(id))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, absent(id)
	case err != nil:
		return nil, drover.Errorf(drover.Internal, "reading a key-encryption key: %w", err)
	}
	key, err := ParseKey(string(text))
	if err != nil || kekID(key) != id {
		return nil, drover.Errorf(drover.Internal, "%s is damaged: take it from another server's folder or from a backup", f.path(id))
	}
	f.keys[id] = key
	return key, nil
}

func (f *Files) path(id string) string { return filepath.Join(f.folder, id+".key") }

// find finds a key here or at another server. It waits for those outside the lock.
func (f *Files) find(ctx context.Context, id string) ([]byte, error) {
	f.mu.Lock()
	key, err := f.own(id)
	f.mu.Unlock()
	if drover.CodeOf(err) != drover.NotFound || f.others == nil || f.fixed != "" {
		return key, err
	}
	if key, err = f.others.KeyEncryptionKey(ctx, id); err != nil {
		return nil, err
	}
	if len(key) != kekSize || kekID(key) != id {
		return nil, drover.Errorf(drover.Internal, "another server gave another key than key-encryption key %s", id)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return key, f.keep(id, key)
}

// make makes a key, or takes the one that this server made before: what that wrapped may have been refused, and no file is to stay that
// nothing was wrapped with.
func (f *Files) make() (id string, key []byte, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.made != "" {
		return f.made, f.keys[f.made], nil
	}
	key = make([]byte, kekSize)
	if _, err := rand.Read(key); err != nil {
		return "", nil, err
	}
	id = kekID(key)
	if err := f.keep(id, key); err != nil {
		return "", nil, err
	}
	f.made = id
	return id, key, nil
}

// keep writes the key into the folder, for its owner's eyes only, and remembers it; f.mu is held.
func (f *Files) keep(id string, key []byte) error {
	if f.folder != "" {
		if err := write(f.folder, f.path(id), base64.StdEncoding.EncodeToString(key)+"\n"); err != nil {
			return drover.Errorf(drover.Internal, "keeping a key-encryption key: %w", err)
		}
	}
	f.keys[id] = key
	return nil
}

// write puts a file in its place once it is whole and on the disk.
func write(folder, path, text string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	t, err := os.CreateTemp(folder, "new-*") // 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(t.Name()) }() // where it was not renamed
	_, err = t.WriteString(text)
	if err == nil {
		err = t.Sync()
	}
	if cerr := t.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(t.Name(), path)
	}
	if err != nil {
		return err
	}
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer d.Close()
	_ = d.Sync() // not every file system can; the rename is in order all the same
	return nil
}
