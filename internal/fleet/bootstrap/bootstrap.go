package bootstrap

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// Config is how machines are reached and what they get.
type Config struct {
	User   string        // default "root"; others need sudo without a password
	Port   int           // default 22
	Signer ssh.Signer    // the key that machines accept. Required
	Host   HostKey       // how the machine proves that it is the one that was bought
	Binary string        // our program, for the machine's kernel and processor. Default: this one
	Dir    string        // where it goes. Default /usr/local/bin
	State  string        // the agent's data folder. Default /var/lib/drover
	Agent  string        // the agent's configuration
	Probe  string        // command that must succeed first; "" = none
	Retry  time.Duration // between attempts. Default 2 s
	// CommandTimeout ends a command that hangs; uploads have ten times as long. Default 1 min.
	CommandTimeout time.Duration
	Report         func(Step) // told of each step that is done; nil = nobody
}

// Step is one that is done.
type Step struct {
	Name string // connect, host key, boot probe, upload, start
	Says string
	Took time.Duration
}

func (c *Config) defaults() {
	or := func(s *string, def string) {
		if *s == "" {
			*s = def
		}
	}
	or(&c.User, "root")
	or(&c.Binary, "/proc/self/exe")
	or(&c.Dir, "/usr/local/bin")
	or(&c.State, "/var/lib/drover")
	if c.Port == 0 {
		c.Port = 22
	}
	if c.Retry == 0 {
		c.Retry = 2 * time.Second
	}
	if c.CommandTimeout == 0 {
		c.CommandTimeout = time.Minute
	}
}

// ReadKey reads a private key. Errors: Invalid, with the field ssh.key.
func ReadKey(file string) (ssh.Signer, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "ssh.key: %w", err)
	}
	key, err := ssh.ParsePrivateKey(data)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "ssh.key: %s: %w; keys with a passphrase can't be used", file, err)
	}
	return key, nil
}

// Run makes the machine at the address one of the fleet's; it tries until ctx ends, or something is wrong that will not
// mend by itself. Errors: Forbidden for a host key or a login that is refused, Unavailable with the last reason when
// ctx ended.
func Run(ctx context.Context, cfg Config, address string, c clock.Clock) error {
	cfg.defaults()
	m := &machine{Config: cfg, address: address, clock: c, at: c.Now()}
	defer m.close()
	for _, step := range []struct {
		name string
		do   func(context.Context) (string, error)
	}{
		{"connect", m.connect}, {"host key", m.prove}, {"boot probe", m.probe}, {"upload", m.upload}, {"start", m.start},
	} {
		says, err := m.until(ctx, step.do)
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		now := c.Now()
		if cfg.Report != nil {
			cfg.Report(Step{step.name, says, now.Sub(m.at)})
		}
		m.at = now
	}
	return nil
}

// machine is one under way.
type machine struct {
	Config
	address string
	clock   clock.Clock
	client  *ssh.Client
	hostKey ssh.PublicKey // of the connection
	proven  ssh.PublicKey // that was verified in full; no other is taken afterwards
	at      time.Time     // when the step began
}

func (m *machine) close() {
	if m.client != nil {
		_ = m.client.Close() // everything was said
	}
}

// until repeats a step until it succeeds, ctx ends, or its error is final.
func (m *machine) until(ctx context.Context, do func(context.Context) (string, error)) (string, error) {
	var last error // of a try that was not cut off
	for {
		says, err := do(ctx)
		if err == nil || drover.CodeOf(err) == drover.Forbidden || drover.CodeOf(err) == drover.Invalid {
			return says, err
		}
		if last == nil || ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
			last = err
		}
		if !clock.Sleep(ctx, m.clock, m.Retry) {
			return says, drover.Errorf(drover.Unavailable, "%w (%w)", last, context.Cause(ctx))
		}
	}
}

// probe waits for the machine to be ready for us.
func (m *machine) probe(ctx context.Context) (string, error) {
	if m.Probe == "" {
		return "none", nil
	}
	_, err := m.run(ctx, m.Probe, nil)
	return m.Probe, err
}

// upload brings our program, unless it is there, and sees whether it runs on that machine.
func (m *machine) upload(ctx context.Context) (string, error) {
	data, err := os.ReadFile(m.Binary)
	if err != nil {
		return "", drover.Errorf(drover.Invalid, "reading our program: %w", err)
	}
	sum := sha256.Sum256(data)
	file := m.program()
	says := fmt.Sprintf("%s, %d MB", file, len(data)>>20)
	if out, err := m.run(ctx, "sha256sum <"+quote(file), nil); err == nil && strings.HasPrefix(out, hex.EncodeToString(sum[:])) {
		says = file + " was there"
	} else if err := m.write(ctx, file, data, "0755"); err != nil {
		return "", err
	}
	if out, err := m.run(ctx, quote(file)+" version", nil); err != nil {
		return "", drover.Errorf(drover.Invalid, "our program does not run there: is it for another processor? %w %s", err, out)
	}
	return says, nil
}

// write writes a file that nobody ever sees half written.
func (m *machine) write(ctx context.Context, file string, data []byte, mode string) error {
	tmp := quote(file + ".new")
	script := "umask 077 && mkdir -p " + quote(path.Dir(file)) + " && cat >" + tmp +
		" && chmod " + mode + " " + tmp + " && mv " + tmp + " " + quote(file)
	_, err := m.run(ctx, script, bytes.NewReader(data))
	return err
}

func (m *machine) program() string { return path.Join(m.Dir, "drover") }

// start starts the agent, unless it runs: its data folder has one agent at most. Where there is systemd, that keeps it
// running.
func (m *machine) start(ctx context.Context) (string, error) {
	config := path.Join(m.State, "agent.hcl")
	if err := m.write(ctx, config, []byte(m.Agent), "0600"); err != nil {
		return "", err
	}
	command := quote(m.program()) + " agent -config " + quote(config) + " -data-dir " + quote(m.State)
	pid := quote(path.Join(m.State, "agent.pid"))
	out, err := m.run(ctx, `if systemctl is-active --quiet drover-agent 2>/dev/null ||
{ test -s `+pid+` && kill -0 "$(cat `+pid+`)" 2>/dev/null; }; then
  echo it runs already
elif test -d /run/systemd/system && systemd-run --unit=drover-agent --property=Restart=always --property=KillMode=process `+command+`; then
  echo systemd keeps it running
else
  setsid `+command+` </dev/null >>`+quote(path.Join(m.State, "agent.log"))+` 2>&1 &
  echo $! >`+pid+`; sleep 1; kill -0 "$(cat `+pid+`)" || { tail -n 3 `+quote(path.Join(m.State, "agent.log"))+`; exit 1; }
  echo started
fi`, nil)
	return strings.TrimSpace(out), err
}

// quote makes one word of a shell's of a text.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
