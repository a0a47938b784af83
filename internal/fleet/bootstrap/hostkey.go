package bootstrap

import (
	"context"
	"crypto/subtle"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/drover-project/drover"
)

// HostKey says how a machine proves that it is the one that was bought. The first that is set counts; without any, no
// machine is trusted.
type HostKey struct {
	// Pinned are keys ("ssh-ed25519 AAAA…") or fingerprints ("SHA256:…"), of images with a key built in.
	Pinned []string
	// Console returns what the machine wrote to its console, where cloud-init prints its keys. It may come late.
	Console func(ctx context.Context) ([]byte, error)
	// Secret is what SecretFile on the machine holds: its user data put it there, and nobody else knows it. Who sits in
	// between can't read it, as our login is of no use to him elsewhere.
	Secret     string
	SecretFile string
}

// before checks the key before the login. Errors: Forbidden, Unavailable if it can't be known yet.
func (h *HostKey) before(ctx context.Context, key ssh.PublicKey) error {
	switch {
	case len(h.Pinned) > 0:
		if !slices.ContainsFunc(h.Pinned, func(p string) bool { return same(p, key) }) {
			return drover.Errorf(drover.Forbidden, "the machine's key %s is not one of ssh.host_keys: somebody may be in between",
				ssh.FingerprintSHA256(key))
		}
	case h.Console != nil:
		return h.printed(ctx, key)
	case h.Secret == "":
		return drover.Errorf(drover.Forbidden,
			"the machine's key %s can't be verified: set ssh.host_keys, or use a provider that shows the console", ssh.FingerprintSHA256(key))
	}
	return nil
}

// printed looks for the key on the console.
func (h *HostKey) printed(ctx context.Context, key ssh.PublicKey) error {
	text, err := h.Console(ctx)
	if err != nil {
		return drover.Errorf(drover.Unavailable, "reading the console for the host key: %w", err)
	}
	found := false
	for line := range strings.Lines(string(text)) {
		for _, word := range []string{"ssh-", "ecdsa-", "SHA256:"} {
			if at := strings.Index(line, word); at >= 0 {
				found = true
				if same(strings.TrimSpace(line[at:]), key) {
					return nil
				}
			}
		}
	}
	if found && strings.Contains(string(text), "-----END SSH HOST KEY KEYS-----") {
		return drover.Errorf(drover.Forbidden, "the machine's key %s is not one of those on its console: somebody may be in between",
			ssh.FingerprintSHA256(key))
	}
	return drover.Errorf(drover.Unavailable, "the console does not show the host key yet")
}

// after checks what needs a login.
func (h *HostKey) after(_ context.Context, key ssh.PublicKey, run func(string) (string, error)) (string, error) {
	switch {
	case len(h.Pinned) > 0:
		return "is pinned: " + ssh.FingerprintSHA256(key), nil
	case h.Console != nil:
		return "is on the console: " + ssh.FingerprintSHA256(key), nil
	}
	out, err := run("cat " + quote(h.SecretFile))
	if err != nil {
		return "", err // the user data may not have been at it yet
	}
	if subtle.ConstantTimeCompare([]byte(strings.TrimSpace(out)), []byte(h.Secret)) != 1 {
		return "", drover.Errorf(drover.Forbidden, "the machine does not know its secret: it is not the one that was bought")
	}
	return "its machine knows the secret: " + ssh.FingerprintSHA256(key), nil
}

// same compares a key with a line that holds one, or a fingerprint.
func same(line string, key ssh.PublicKey) bool {
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return false
	}
	if strings.HasPrefix(fields[0], "SHA256:") {
		return fields[0] == ssh.FingerprintSHA256(key)
	}
	other, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	return err == nil && string(other.Marshal()) == string(key.Marshal())
}
