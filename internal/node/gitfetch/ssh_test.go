package gitfetch

import (
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/gitfetch/gittest"
)

// sshServer serves the repository to whoever has the key, and returns its address and its line of known_hosts.
func sshServer(t *testing.T, r *gittest.Repository, allowed ssh.PublicKey) (address, known string) {
	t.Helper()
	_, hostKey, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(hostKey)
	require.NoError(t, err)
	cfg := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(allowed.Marshal()) {
			return nil, fmt.Errorf("another key")
		}
		return &ssh.Permissions{}, nil
	}}
	cfg.AddHostKey(signer)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var work sync.WaitGroup
	t.Cleanup(work.Wait)
	t.Cleanup(func() { _ = l.Close() })
	work.Go(func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() { serveSSH(c, cfg, r) }) // ends with the connection
		}
	})
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return l.Addr().String(), "[127.0.0.1]:" + port + " " + string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
}

func serveSSH(c net.Conn, cfg *ssh.ServerConfig, r *gittest.Repository) {
	defer c.Close()
	conn, channels, requests, err := ssh.NewServerConn(c, cfg)
	if err != nil {
		return
	}
	defer conn.Close()
	go ssh.DiscardRequests(requests)
	for ch := range channels {
		channel, requests, err := ch.Accept()
		if err != nil {
			return
		}
		for q := range requests {
			if q.Type != "exec" {
				_ = q.Reply(q.Type == "env", nil)
				continue
			}
			_ = q.Reply(true, nil)
			program := exec.Command("git", "upload-pack", filepath.Join(r.Dir, ".git"))
			program.Stdin, program.Stdout, program.Stderr = channel, channel, channel.Stderr()
			program.Env = append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
			status := struct{ Status uint32 }{}
			if program.Run() != nil {
				status.Status = 1
			}
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
			_ = channel.Close() // the client ends the connection
		}
	}
}

// sshKey makes a pair of keys: what a server allows, and what a job gives.
func sshKey(t *testing.T) (allowed ssh.PublicKey, key string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	allowed, err = ssh.NewPublicKey(public)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	return allowed, string(pem.EncodeToMemory(block))
}

// ssh goes through the tunnel, knows who it talks to, and has the job's key only.
func TestFetchBySSH(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a", "one\n")
	r.Commit()
	allowed, key := sshKey(t)
	address, known := sshServer(t, r, allowed)
	_, strange := sshKey(t)
	hosts, none := filepath.Join(t.TempDir(), "known_hosts"), filepath.Join(t.TempDir(), "none")
	require.NoError(t, os.WriteFile(hosts, []byte(known), 0o600))

	ways(t, func(t *testing.T, change func(*Git)) {
		for name, c := range map[string]struct{ url, key, hosts, allow, says string }{
			"it works":     {"ssh://git@" + address + "/repo.git", key, hosts, "127.0.0.0/8", ""},
			"unknown host": {"ssh://git@" + address + "/repo.git", key, none, "127.0.0.0/8", "Host key verification failed"},
			"another key": {
				"ssh://git@" + address + "/repo.git", strange, hosts, "127.0.0.0/8",
				"Could not read from remote repository",
			},
			"no key":           {"ssh://git@" + address + "/repo.git", "none", hosts, "127.0.0.0/8", "Could not read from remote repository"},
			"no address of it": {"ssh://git@" + address + "/repo.git", key, hosts, "10.0.0.0/8", "127.0.0.1 is a loopback address"},
			"a password":       {"ssh://git:secret@" + address + "/repo.git", key, hosts, "127.0.0.0/8", "give an sshkey"},
			"an option":        {"ssh://-oX/repo.git", key, hosts, "127.0.0.0/8", "strange hostname"},
		} {
			g := newGit(c.allow)
			g.hosts = []string{c.hosts}
			change(g)
			files, err := fetched(t, g, Want{URL: c.url, Key: c.key})
			if c.says == "" {
				require.NoError(t, err, name)
				require.Equal(t, map[string]string{"a": "one\n"}, files)
				continue
			}
			require.ErrorContains(t, err, c.says, name)
			require.Equal(t, strings.Contains(c.says, "loopback"), drover.CodeOf(err) == drover.Forbidden, name)
		}
	})
}

// A repository's folder has the task's name in its path, and git has a shell start ssh. Without a user of its own, git would have
// run what a job's author wrote into that name as the agent.
func TestNoShellReadsPaths(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a", "one\n")
	r.Commit()
	allowed, key := sshKey(t)
	address, known := sshServer(t, r, allowed)
	hosts := filepath.Join(t.TempDir(), "known_hosts")
	require.NoError(t, os.WriteFile(hosts, []byte(known), 0o600))
	ways(t, func(t *testing.T, change func(*Git)) {
		for _, task := range []string{"x;echo told >&2;false", "$(echo told >&2)", "it's \"100%d\"; echo told >&2 #", "two words"} {
			g := newGit("127.0.0.0/8")
			g.hosts = []string{hosts}
			change(g)
			w := Want{URL: "ssh://git@" + address + "/repo.git", Root: rootOf(t), Folder: task + "/private", Size: 1 << 20}
			w.Key = key
			tree, err := g.Fetch(t.Context(), w)
			require.NoError(t, err, task)
			require.NoError(t, tree.Close())
		}
	})
}
