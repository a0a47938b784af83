package executions

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// TestSecretsAreGiven: a command has its secrets in its environment and in files that are gone with it; what it writes of them is
// hidden, and no list tells them.
func TestSecretsAreGiven(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	g := newGuest(t, wire.Boot{Env: map[string]string{secretsDir: folder}})
	spec := script("s", `printf 'pass %s' hun; printf 'ter2 %s\n' "$PASS"; cat "$DROVER_SECRETS_DIR/key"; `+
		`stat -c %a "$DROVER_SECRETS_DIR"/key; ls "$NOMAD_SECRETS_DIR"; read x; echo "$OPEN" >&2`)
	spec.Env = map[string]string{"PASS": "overridden"}
	spec.Secrets = []execution.Secret{{Env: "PASS", Mask: true}, {File: "key", Mask: true}, {Env: "OPEN"}}
	spec.Values, spec.Stdin = []string{"hunter2", "line one\nline two\n", "open"}, true
	s := g.start(t, spec)
	s.read(t, "pass *** ***\n***\n400\nexec-s\n")
	for _, x := range g.List() {
		require.Empty(t, x.Spec.Values)
		require.NotContains(t, x.Spec.Env["PASS"], "hunter2")
	}
	s.write("\n")
	out, receipt := s.end(t)
	require.Equal(t, execution.CauseExited, receipt.Cause)
	require.Equal(t, "open\n", out[1])
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestSecretsThatCannotBeGiven fail the start, and leave nothing.
func TestSecretsThatCannotBeGiven(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*execution.Spec, *wire.Boot){
		"no folder":        func(_ *execution.Spec, b *wire.Boot) { b.Env = nil },
		"a path":           func(s *execution.Spec, _ *wire.Boot) { s.Secrets[0].File = "../key" },
		"it is there":      func(_ *execution.Spec, b *wire.Boot) { _ = os.Mkdir(b.Env[secretsDir]+"/exec-s", 0o700) },
		"no such command":  func(s *execution.Spec, _ *wire.Boot) { s.Argv = []string{"no-such-command"} },
		"no such folder":   func(_ *execution.Spec, b *wire.Boot) { b.Env[secretsDir] += "/none" },
		"a link elsewhere": func(_ *execution.Spec, b *wire.Boot) { _ = os.Symlink("/tmp", b.Env[secretsDir]+"/exec-s") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			boot := wire.Boot{Env: map[string]string{secretsDir: t.TempDir()}}
			spec := script("s", "true")
			spec.Secrets, spec.Values = []execution.Secret{{File: "key"}}, []string{"v"}
			change(&spec, &boot)
			g := newGuest(t, boot)
			r := g.reader()
			go r.Start(wire.Exec{Spec: spec}, nil) // ends with the session
			f := r.Agent.Next(t)
			require.Equal(t, wire.KindExit, f.Kind)
			d := wire.Decoder{B: f.Payload}
			require.Equal(t, execution.CauseStartFailed, d.Receipt().Cause)
			_, err := os.Stat(boot.Env[secretsDir] + "/exec-s/key")
			require.Error(t, err)
		})
	}
}

// What a mask lets through is what hiding the values in the whole would leave, however the stream is cut; and it holds back no more than
// a value's length.
func TestMaskAcrossBorders(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 0, 5, -1)
		values := rapid.SliceOfN(letters, 1, 3).Draw(t, "values")
		whole := rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 0, 40, -1).Draw(t, "text")
		m := newMask(values)
		want := hidden(whole, values)
		if m == nil {
			require.Equal(t, whole, want)
			return
		}
		var got strings.Builder
		put := func(p []byte) { got.Write(p) }
		for rest := whole; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			m.write([]byte(rest[:n]), put)
			rest = rest[n:]
			require.Less(t, len(m.held), 5)
		}
		m.flush(put)
		require.Equal(t, want, got.String())
	})
}

// hidden is the stupid way: at each place, the longest value that begins there.
func hidden(text string, values []string) (out string) {
	values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	for text != "" {
		i := slices.IndexFunc(values, func(v string) bool { return strings.HasPrefix(text, v) })
		if i < 0 {
			out, text = out+text[:1], text[1:]
			continue
		}
		out, text = out+stars, strings.TrimPrefix(text, values[i])
	}
	return out
}
