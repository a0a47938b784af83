package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	foundRow   = regexp.MustCompile(`(?m)^\| ([BW]\d+) \| [^|]+ \| [^|]+ \| ([^|]+) \|$`)
	triedTest  = regexp.MustCompile("`(Test\\w+)`")
	triedGuest = regexp.MustCompile("`([a-z][^`]+)`")
)

// TestWhatTheReviewFoundIsTried: each finding of the security review has its row in docs/security.md, and what the row names as
// trying it is there: tests, and hostile programs of `drover doctor`.
func TestWhatTheReviewFoundIsTried(t *testing.T) {
	t.Parallel()
	top := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(top, "docs", "security.md"))
	require.NoError(t, err)
	tests, programs := reviewers(t, top)
	rows := map[string]bool{}
	for _, m := range foundRow.FindAllStringSubmatch(string(text), -1) {
		rows[m[1]] = true
		named, guests, _ := strings.Cut(m[2], "doctor: ")
		list := triedTest.FindAllStringSubmatch(named, -1)
		require.NotEmpty(t, list, m[1])
		for _, name := range list {
			require.Contains(t, tests, "func "+name[1]+"(", "%s: there is no such test", m[1])
		}
		for _, name := range triedGuest.FindAllStringSubmatch(guests, -1) {
			require.Contains(t, programs, fmt.Sprintf("%q", name[1]), "%s: drover doctor has no such program", m[1])
		}
	}
	for kind, n := range map[string]int{"B": 11, "W": 14} {
		for i := range n {
			require.True(t, rows[fmt.Sprint(kind, i+1)], "%s%d has no row", kind, i+1)
		}
	}
}

// reviewers are the texts of all tests, and of the hostile programs.
func reviewers(t *testing.T, top string) (tests, programs string) {
	t.Helper()
	var all, trial strings.Builder
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		into := &all
		if !strings.HasSuffix(path, "_test.go") {
			if into = &trial; filepath.Base(filepath.Dir(path)) != "trial" {
				return nil
			}
		}
		text, err := os.ReadFile(path)
		into.Write(text)
		return err
	})
	require.NoError(t, err)
	return all.String(), trial.String()
}
