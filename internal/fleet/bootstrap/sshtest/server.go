package sshtest

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// NewKey makes a key.
func NewKey(t testing.TB) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	key, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	return key
}

// Server is the ssh server.
type Server struct {
	User   ssh.Signer        // who may log in
	Logins atomic.Int64      // how many did
	Moved  map[string]string // words in commands, and in small files that are written, that are replaced; set it before the first login

	key      atomic.Pointer[ssh.Signer]
	listener net.Listener
	all      sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn // guarded by mu
	commands []string   // guarded by mu
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{User: NewKey(t)}
	s.Rekey(NewKey(t))
	var err error
	s.listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.all.Go(s.accept) // ends with the listener
	t.Cleanup(func() {
		_ = s.listener.Close()
		s.Cut()
		s.all.Wait()
	})
	return s
}

// Rekey gives it another host key.
func (s *Server) Rekey(k ssh.Signer) { s.key.Store(&k) }

// HostKey is its host key.
func (s *Server) HostKey() ssh.PublicKey { return (*s.key.Load()).PublicKey() }

// Port is where it listens, on 127.0.0.1.
func (s *Server) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// Cut breaks all connections.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		_ = c.Close()
	}
}

// Said returns all commands.
func (s *Server) Said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.commands, "\n")
}

func (s *Server) accept() {
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

func (s *Server) serve(c net.Conn) {
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(s.User.PublicKey().Marshal()) {
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
	s.Logins.Add(1)
	s.all.Go(func() { ssh.DiscardRequests(requests) }) // ends with the connection
	for n := range channels {
		ch, reqs, err := n.Accept()
		if err == nil {
			s.all.Go(func() { s.session(ch, reqs) }) // ends with the channel
		}
	}
	_ = conn.Wait()
}

func (s *Server) moved(text string) string {
	for from, to := range s.Moved {
		text = strings.ReplaceAll(text, from, to)
	}
	return text
}

func (s *Server) session(ch ssh.Channel, reqs <-chan *ssh.Request) {
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
		cmd := exec.Command("sh", "-c", s.moved(payload.Command))
		cmd.Stdin, cmd.Stdout, cmd.Stderr = ch, ch, ch.Stderr()
		if strings.Contains(payload.Command, ".hcl.new") {
			if data, err := io.ReadAll(ch); err == nil {
				cmd.Stdin = strings.NewReader(s.moved(string(data)))
			}
		}
		code := uint32(0)
		if err := cmd.Run(); err != nil {
			code = 255
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				code = uint32(exit.ExitCode()) // small
			}
		}
		_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
		return
	}
}
