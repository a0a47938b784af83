package cni

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
)

// The bounds of what a plugin says.
const (
	maxOutput = 1 << 20 // bytes of each stream
	maxWords  = 500     // characters of an error
	endWait   = time.Second
)

// runner runs plugins for libcni.
type runner struct{ *version.PluginDecoder }

var _ invoke.Exec = runner{}

// FindInPath returns the plugin's file.
func (runner) FindInPath(plugin string, paths []string) (string, error) {
	return invoke.FindInPath(plugin, paths)
}

// ExecPlugin runs a plugin until it ends or ctx does, and returns its output. Its environment is CNI's, without the agent's, which may
// hold secrets.
func (runner) ExecPlugin(ctx context.Context, path string, stdin []byte, environ []string) ([]byte, error) {
	if err := trusted(path); err != nil {
		return nil, err
	}
	env := slices.DeleteFunc(slices.Clone(environ), func(kv string) bool { return !strings.HasPrefix(kv, "CNI_") })
	out, words, err := run(ctx, path, stdin, env)
	switch {
	case err == nil && slices.Contains(env, "CNI_COMMAND=ADD"):
		return out, wellFormed(out)
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("it did not end in time and was ended")
	}
	said := types.Error{}
	if json.Unmarshal(out, &said) == nil && said.Msg != "" {
		if said.Details != "" {
			said.Msg += "; " + said.Details
		}
		return nil, errors.New(plain(said.Msg))
	}
	if text := plain(string(words)); text != "" {
		return nil, fmt.Errorf("%w: %s", err, text)
	}
	return nil, err
}

// wellFormed refuses a result that libcni trips over.
func wellFormed(out []byte) error {
	var result struct{ Interfaces, IPs, Routes []*json.RawMessage }
	if err := json.Unmarshal(out, &result); err != nil {
		return fmt.Errorf("its result is no JSON of CNI: %w", err)
	}
	null := slices.Contains(slices.Concat(result.Interfaces, result.IPs, result.Routes), nil)
	if null || !bytes.HasPrefix(bytes.TrimSpace(out), []byte("{")) {
		return errors.New("its result is null, or has a null in it")
	}
	return nil
}

// run runs a program in a process group of its own, all of which ends when ctx does.
func run(ctx context.Context, path string, stdin []byte, env []string) (out, words []byte, err error) {
	c := exec.CommandContext(ctx, path)
	stdout, stderr := &bounded{}, &bounded{}
	c.Env = append(env, "PATH="+os.Getenv("PATH"))
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(stdin), stdout, stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = endWait // a child that left the group may hold the output open
	err = c.Run()
	if stdout.cut {
		err = errors.Join(err, fmt.Errorf("it wrote more than %d bytes", maxOutput))
	}
	return stdout.data, stderr.data, err
}

// bounded keeps the first bytes of a stream.
type bounded struct {
	data []byte
	cut  bool
}

// Write takes all, and keeps what fits.
func (b *bounded) Write(p []byte) (int, error) {
	room := maxOutput - len(b.data)
	b.cut = b.cut || len(p) > room
	b.data = append(b.data, p[:min(len(p), room)]...)
	return len(p), nil
}

// plain makes a plugin's words fit for an event: one line, bounded, without control characters.
func plain(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if r := []rune(text); len(r) > maxWords {
		return string(r[:maxWords]) + "…"
	}
	return text
}
