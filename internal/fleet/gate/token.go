package gate

import (
	"cmp"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/rotation"
	"github.com/drover-project/drover/internal/tlspin"
)

// TokenFile is where a server keeps the token that it made for its nodes, in its data folder.
const TokenFile = "join-token"

// ConfiguredToken returns the token of the configuration, which may name a file instead. key is the configuration key of
// the file, for errors. Errors: Invalid.
func ConfiguredToken(token, file, key string) (string, error) {
	if token != "" || file == "" {
		return token, nil
	}
	token, err := ReadToken(file)
	if err != nil {
		return "", drover.Errorf(drover.Invalid, "%s: %w", key, err)
	}
	return token, nil
}

// TokenConfig says which token nodes show to a server.
type TokenConfig struct {
	Token, File string // server.join_token and server.join_token_file
	Folder      string // where a token is kept that the server makes itself
	Pin         string // of the server's own authority; "" if it has none
	Certified   bool   // nodes show a certificate of an authority of the configuration, which says as much as a token
}

// ServerToken returns the secret that nodes must show to the server: what the configuration says, else what was made at the first start.
// It is "" where they are certified, unless one is configured. Errors: Invalid, with the key or the file.
func ServerToken(c TokenConfig) (secret string, err error) {
	switch {
	case c.Token != "" || c.File != "":
	case c.Certified:
		return "", nil
	default:
		return keptToken(c.Folder, c.Pin)
	}
	token, err := ConfiguredToken(c.Token, c.File, "server.join_token_file")
	if err != nil {
		return "", err
	}
	secret, named, err := tlspin.Split(token)
	switch {
	case err != nil:
		return "", drover.Errorf(drover.Invalid, "server.join_token: %w", err)
	case secret == "": // it would let everybody in
		return "", drover.Errorf(drover.Invalid, "server.join_token: has no secret before the @")
	case named != "" && named != c.Pin:
		return "", drover.Errorf(drover.Invalid, "server.join_token: it names the authority %s, and this server's own is %s: leave out what "+
			"follows the @, or give this server the files ca.pem and ca-key.pem of the one that is meant", named, cmp.Or(c.Pin, "none"))
	}
	return secret, nil
}

// keptToken returns the secret of the token in the folder, and makes one of 130 bits the first time. The file has the pin beside it, as
// nodes are given it. Errors: Invalid.
func keptToken(folder, pin string) (secret string, err error) {
	path := filepath.Join(folder, TokenFile)
	kept, err := ReadToken(path)
	if err == nil {
		if secret, _, err = tlspin.Split(kept); err == nil && secret == "" {
			err = errors.New("has no secret before the @; remove it to have one made")
		}
	} else if errors.Is(err, fs.ErrNotExist) {
		secret, err = rand.Text(), nil
	}
	if token := tlspin.Join(secret, pin); err == nil && token != kept {
		err = rotation.WriteFile(path, []byte(token+"\n"))
	}
	if err != nil {
		return "", drover.Errorf(drover.Invalid, "%s: %w", path, err)
	}
	return secret, nil
}

// ReadToken reads a file that holds one token on one line.
func ReadToken(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, "\r\n") {
		return "", errors.New("must hold one token, on one line; remove it to have one made")
	}
	return token, nil
}
