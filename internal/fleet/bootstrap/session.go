package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/drover-project/drover"
)

const dialTimeout = 20 * time.Second

// connect logs in. A key that is not the machine's is refused before anything is told to who has it.
func (m *machine) connect(ctx context.Context) (string, error) {
	if m.client != nil {
		return m.client.RemoteAddr().String(), nil
	}
	address := net.JoinHostPort(m.address, strconv.Itoa(m.Port))
	dialCtx, cancel := m.clock.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(dialCtx, "tcp", address)
	if err != nil {
		return "", drover.Errorf(drover.Unavailable, "%w", err)
	}
	stop := context.AfterFunc(dialCtx, func() { _ = conn.Close() }) // ends the handshake
	var refused error
	config := &ssh.ClientConfig{
		User: m.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(m.Signer)},
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			if m.proven != nil && string(m.proven.Marshal()) != string(key.Marshal()) {
				refused = drover.Errorf(drover.Forbidden, "the machine's key changed to %s: somebody may be in between", ssh.FingerprintSHA256(key))
			} else {
				refused = m.Host.before(ctx, key)
			}
			m.hostKey = key
			return refused
		},
	}
	c, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if err != nil {
		stop()
		_ = conn.Close() // the handshake's error counts
		switch {
		case refused != nil:
			return "", refused
		case strings.Contains(err.Error(), "unable to authenticate"):
			return "", drover.Errorf(drover.Unavailable, "user %s: the machine does not take our key (yet): %w", m.User, err)
		}
		return "", drover.Errorf(drover.Unavailable, "%w", err)
	}
	stop()
	m.client = ssh.NewClient(c, channels, requests)
	return address, nil
}

// prove is the second half of the verification of the host key: what only works once we are logged in.
func (m *machine) prove(ctx context.Context) (string, error) {
	says, err := m.Host.after(ctx, m.hostKey, func(command string) (string, error) { return m.run(ctx, command, nil) })
	if err == nil {
		m.proven = m.hostKey
	}
	return says, err
}

// run runs a script as root, and returns what it printed. Errors: with its last words; a broken connection is forgotten,
// so that the next try makes another.
func (m *machine) run(ctx context.Context, script string, in io.Reader) (string, error) {
	if _, err := m.connect(ctx); err != nil { // again, if the last connection broke
		return "", err
	}
	session, err := m.client.NewSession()
	if err != nil {
		m.close()
		m.client = nil
		return "", drover.Errorf(drover.Unavailable, "opening a session: %w", err)
	}
	defer session.Close() //nolint:errcheck // it ended, or its connection did
	limit := m.CommandTimeout
	if in != nil {
		limit *= 10
	}
	runCtx, cancel := m.clock.WithTimeout(ctx, limit)
	defer cancel()
	client := m.client
	stop := context.AfterFunc(runCtx, func() { _ = client.Close() }) // the only way to be sure that Run returns
	defer stop()
	var out, said bytes.Buffer
	session.Stdin, session.Stdout, session.Stderr = in, &out, &said
	command := "sh -c " + quote(script)
	if m.User != "root" {
		command = "sudo -n " + command
	}
	err = session.Run(command)
	if err == nil {
		return out.String(), nil
	}
	var exit *ssh.ExitError
	switch {
	case runCtx.Err() != nil:
		m.client = nil
		return "", drover.Errorf(drover.Unavailable, "a command did not end within %v: %s", limit, firstLine(script))
	case !errors.As(err, &exit):
		m.close()
		m.client = nil
	}
	return out.String(), drover.Errorf(drover.Unavailable, "%w %s", err, tail(said.String()+out.String()))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// tail is the end of what a command said, for messages.
func tail(s string) string {
	const most = 300
	s = strings.TrimSpace(s)
	if len(s) > most {
		s = "…" + s[len(s)-most:]
	}
	if s == "" {
		return ""
	}
	return fmt.Sprintf("(%s)", s)
}
