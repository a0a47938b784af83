package manual_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/clitest"
)

func TestPagesAreWritten(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, nil)
	home := t.TempDir()
	api.Env = map[string]string{"HOME": home}
	folder := filepath.Join(home, ".local/share/man/man1")
	api.Check(clitest.Case{Args: "man", Out: []string{" pages into " + folder + "\n"}})
	read := func(page string) string {
		text, err := os.ReadFile(filepath.Join(folder, page))
		require.NoError(t, err)
		return string(text)
	}
	run := read("drover-job-run.1")
	for _, want := range []string{
		".SH NAME\ndrover\\-job\\-run \\- Register a job and follow its placement\n", ".SH SYNOPSIS\ndrover job run FILE|\\- [flags]\n",
		".TP\n\\fB\\-check\\-index\\fR \\fIint\\fR\n", ".SH GLOBAL OPTIONS\n.TP\n\\fB\\-address\\fR",
		".SH EXAMPLES\n.nf\ndrover job run web.hcl\n",
		".SH SEE ALSO\n\\fBdrover\\-job\\fR(1)\n",
	} {
		require.Contains(t, run, want)
	}
	require.Contains(t, read("drover-job.1"), ".SH COMMANDS\n")
	require.Contains(t, read("drover.1"), "Exit codes: 0 done")
	require.NoFileExists(t, filepath.Join(folder, "drover-stop.1"), "help does not list it either")
	api.Check(
		clitest.Case{Args: "man " + filepath.Join(home, "other"), Out: []string{filepath.Join(home, "other", "man1")}},
		clitest.Case{Args: "man /dev/null/x", Code: 1, Err: []string{"not a directory"}},
	)
	api.Env = nil
	api.Check(clitest.Case{Args: "man", Code: 2, Err: []string{"HOME names no folder: name one"}})
}

// TestNoTextIsARequest of roff's: each line is a request that we write, or text without a control character in front.
func TestNoTextIsARequest(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, nil)
	folder := t.TempDir()
	require.Zero(t, api.Run("man", folder).Code)
	pages, err := filepath.Glob(filepath.Join(folder, "man1", "*.1"))
	require.NoError(t, err)
	require.Greater(t, len(pages), 150)
	request := regexp.MustCompile(`^\.(TH "[A-Z0-9-]+" 1 |SH [A-Z ]+$|PP$|TP$|nf$|fi$)`)
	sequence := regexp.MustCompile(`\\(e|-|&|f[BIR]|\[u[0-9A-F]{4,5}\])`)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(line, ".") {
				require.Regexp(t, request, line, page)
			}
			require.False(t, strings.HasPrefix(line, "'"), "%s: %s", page, line)
			require.Regexp(t, `^[ -~]*$`, line, page)
			require.NotContains(t, sequence.ReplaceAllString(line, ""), `\`, page)
		}
	}
}
