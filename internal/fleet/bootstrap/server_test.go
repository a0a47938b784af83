package bootstrap_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"net"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

func newKey(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	key, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	return key
}

// sshd is an ssh server in this process that really runs what it is told to.
type sshd struct {
	key      atomic.Pointer[ssh.Signer] // its host key
	user     ssh.Signer                 // who may log in
	listener net.Listener
	all      sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn // guarded by mu
	commands []string   // guarded by mu
	logins   atomic.Int64
}

func newServer(t *testing.T) *sshd {
	t.Helper()
	s := &sshd{user: newKey(t)}
	s.rekey(newKey(t))
	var err error
	s.listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.all.Go(s.accept) // ends with the listener
	t.Cleanup(func() {
		_ = s.listener.Close()
		s.cut()
		s.all.Wait()
	})
	return s
}

func (s *sshd) rekey(k ssh.Signer) { s.key.Store(&k) }

func (s *sshd) port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// cut breaks all connections.
func (s *sshd) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		_ = c.Close()
	}
}

func (s *sshd) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.commands, "\n")
}

func (s *sshd) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, c)
		s.mu.Unlock()
		s.all.Go(func() { s.serve(c) }) // ends with the connection
	}
}

func (s *sshd) serve(c net.Conn) {
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(s.user.PublicKey().Marshal()) {
			return nil, errors.New("who are you?")
		}
		return &ssh.Permissions{}, nil
	}}
	config.AddHostKey(*s.key.Load())
	conn, channels, requests, err := ssh.NewServerConn(c, config)
	if err != nil {
		_ = c.Close()
		return
	}
	s.logins.Add(1)
	s.all.Go(func() { ssh.DiscardRequests(requests) }) // ends with the connection
	for n := range channels {
		ch, reqs, err := n.Accept()
		if err == nil {
			s.all.Go(func() { s.session(ch, reqs) }) // ends with the channel
		}
	}
	_ = conn.Wait()
}

func (s *sshd) session(ch ssh.Channel, reqs <-chan *ssh.Request) {
	defer ch.Close()
	for r := range reqs {
		var payload struct{ Command string }
		if r.Type != "exec" || ssh.Unmarshal(r.Payload, &payload) != nil {
			_ = r.Reply(false, nil)
			continue
		}
		_ = r.Reply(true, nil)
		s.mu.Lock()
		s.commands = append(s.commands, payload.Command)
		s.mu.Unlock()
		cmd := exec.Command("sh", "-c", payload.Command)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = ch, ch, ch.Stderr()
		code := uint32(0)
		if err := cmd.Run(); err != nil {
			code = 255
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				code = uint32(exit.ExitCode()) //nolint:gosec // small
			}
		}
		_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
		return
	}
}
