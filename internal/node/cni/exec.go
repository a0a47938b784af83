package cni

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/drover-project/drover/internal/node/program"
)

// The bounds of what a plugin says.
const (
	maxOutput = 1 << 20 // bytes of each stream
	maxWords  = 500     // characters of an error
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
	if _, err := program.Trusted(path); err != nil {
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

// run runs a plugin.
func run(ctx context.Context, path string, stdin []byte, env []string) (out, words []byte, err error) {
	call := program.Call{Path: path, Env: append(env, "PATH="+os.Getenv("PATH")), Stdin: stdin, Most: maxOutput}
	out, words, err = call.Run(ctx)
	if errors.Is(err, program.ErrTooMuch) {
		err = fmt.Errorf("it printed more than %d bytes", maxOutput)
	}
	return out, words, err
}

// plain makes a plugin's words fit for an event.
func plain(text string) string { return program.Plain(text, maxWords) }
