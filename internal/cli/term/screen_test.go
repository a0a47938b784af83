package term

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

// TestTablesFitTheScreen: the widest columns give way, but never the first, nor below what can be told apart.
func TestTablesFitTheScreen(t *testing.T) {
	t.Parallel()
	rows := [][]string{
		{"ID", "Name", "Description"},
		{"91c3aaaa-0000-0000-0000-000000000000", "web", "waits for a node — with a card"},
		{"a", strings.Repeat("n", 20), "x"},
	}
	for width, want := range map[int]string{
		0: "91c3aaaa-0000-0000-0000-000000000000  web                   waits for a node — with a card\n" +
			"a                                     nnnnnnnnnnnnnnnnnnnn  x\n",
		80: "91c3aaaa-0000-0000-0000-000000000000  web                   waits for a node — …\n" +
			"a                                     nnnnnnnnnnnnnnnnnnnn  x\n",
		40: "91c3aaaa-0000-0000-0000-000000000000  web           waits for a…\n" +
			"a                                     nnnnnnnnnnn…  x\n",
	} {
		var b bytes.Buffer
		require.NoError(t, screen{width: width}.lay(&b, rows, 2))
		_, body, _ := strings.Cut(b.String(), "\n")
		require.Equal(t, want, body, width)
	}
}

func TestColoursAreForThoseWhoWantThem(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]map[string]bool{
		"TERM=xterm":            {"linux": true, "darwin": true, "windows": true},
		"":                      {"linux": true, "windows": false},
		"WT_SESSION=1":          {"windows": true},
		"TERM=dumb":             {"linux": false},
		"TERM=xterm NO_COLOR=1": {"linux": false, "windows": false},
		"NO_COLOR=":             {"linux": true},
	} {
		getenv := func(name string) string {
			for _, pair := range strings.Fields(env) {
				if key, value, _ := strings.Cut(pair, "="); key == name {
					return value
				}
			}
			return ""
		}
		for system, colour := range want {
			require.Equal(t, colour, colourful(getenv, system), "%s on %s", env, system)
		}
	}
	require.Equal(t, "running", screen{}.paint("running"))
	require.Equal(t, green+"running"+plain, screen{colour: true}.paint("running"))
	require.Equal(t, "web", screen{colour: true}.paint("web"))
}

// TestATerminalIsAskedForItsWidth, and what is none has no bounds.
func TestATerminalIsAskedForItsWidth(t *testing.T) {
	t.Parallel()
	ours, its, err := pty.Open()
	require.NoError(t, err)
	defer ours.Close()
	defer its.Close()
	require.NoError(t, pty.Setsize(its, &pty.Winsize{Rows: 24, Cols: 33}))
	require.Equal(t, 33, screenOf(its).width)
	require.NoError(t, Table(its, "", "ID|About", [][]string{{"a", strings.Repeat("é", 99)}}))
	line := make([]byte, 256)
	n, err := ours.Read(line)
	require.NoError(t, err)
	_, second, _ := strings.Cut(strings.TrimRight(string(line[:n]), "\r\n"), "\r\n")
	require.Equal(t, 33, utf8.RuneCountInString(second))
	require.Equal(t, screen{}, screenOf(&bytes.Buffer{}))
	file, err := os.Create(t.TempDir() + "/f")
	require.NoError(t, err)
	defer file.Close()
	require.Equal(t, screen{}, screenOf(file))
}
