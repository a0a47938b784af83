package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/node/fingerprint"
)

// joinTokenFile is where a server keeps the token that it made for its nodes, in data_dir.
const joinTokenFile = "join-token"

// joinToken returns what nodes must show to this server: what the configuration says, else what was made at the first
// start. It is empty with TLS between agents unless one is configured: then a node shows a certificate of the authority
// that alone is trusted, which says as much.
func (a *Agent) joinToken() (string, error) {
	s := a.cfg.Server
	if s.JoinToken != "" || s.JoinTokenFile != "" {
		return configuredToken(s.JoinToken, s.JoinTokenFile, "server.join_token_file")
	}
	if a.cfg.TLS != nil && config.True(a.cfg.TLS.RPC) {
		return "", nil
	}
	path := filepath.Join(a.dataDir, joinTokenFile)
	token, err := readToken(path)
	if errors.Is(err, fs.ErrNotExist) {
		token = rand.Text() // 130 bits
		err = writeToken(path, token)
	}
	if err != nil {
		return "", drover.Errorf(drover.Invalid, "%s: %w", path, err)
	}
	return token, nil
}

// configuredToken returns the token of the configuration, which may name a file instead.
func configuredToken(token, file, key string) (string, error) {
	if token != "" || file == "" {
		return token, nil
	}
	token, err := readToken(file)
	if err != nil {
		return "", drover.Errorf(drover.Invalid, "%s: %w", key, err)
	}
	return token, nil
}

func readToken(path string) (string, error) {
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

// writeToken makes the file whole or not at all: a crash must not leave an empty one.
func writeToken(path, token string) error {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(token + "\n")
	if err == nil {
		err = f.Sync()
	}
	if err = cmp.Or(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// nodeToken returns what this node shows to the server: what the configuration says, else what a server of the same user
// on this machine has left for it. It is asked for before each attempt, as a server that keeps nothing makes a new one at
// each start. Errors: those of a configured file.
func nodeToken(ctx context.Context, c *config.Client) (string, error) {
	if c.JoinToken != "" || c.JoinTokenFile != "" {
		return configuredToken(c.JoinToken, c.JoinTokenFile, "client.join_token_file")
	}
	if m := c.Machine; m != nil && len(m.Tokens) > 0 {
		return launchToken(ctx, m)
	}
	return announcedToken(ctx, c.ServerList()[0]), nil
}

// tellNodes leaves the token where nodes of the same user on this machine find it, and says how others get it.
func (a *Agent) tellNodes() {
	token := a.control.joinToken
	if token == "" {
		return
	}
	var err error
	if a.told, err = announce(a.RPCAddr(), token); err != nil {
		a.deps.Log.Warn("nodes of this machine must be given the join token, as there is no place to leave it for them", "error", err)
	}
	where := "server.join_token"
	if s := a.cfg.Server; s.JoinToken == "" {
		where = cmp.Or(s.JoinTokenFile, filepath.Join(a.dataDir, joinTokenFile))
	}
	a.deps.Log.Info("nodes of this user on this machine join by themselves, others with the token", "token_in", where,
		"command", "drover agent -client -servers "+usable(serverAddress(a), fingerprint.Probe(a.dataDir).IP)+" -data-dir DIR -join-token TOKEN")
}

// usable returns an address at which a listener can be called, given an address of the machine's: none can be called at
// 0.0.0.0.
func usable(address, machine string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() && machine != "" {
		return net.JoinHostPort(machine, port)
	}
	return address
}
