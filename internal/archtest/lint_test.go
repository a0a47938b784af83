package archtest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A directive that names a linter which does not run excepts nothing, and says to its reader that something is checked.
// nolintlint looks only at linters that run.
func TestExceptionsOfLintNameLintersThatRun(t *testing.T) {
	t.Parallel()
	config, err := os.ReadFile("../../.golangci.yml")
	require.NoError(t, err)
	enabled := regexp.MustCompile(`(?m)^  enable: \[(.+)\]$`).FindSubmatch(config)
	require.NotNil(t, enabled)
	run := append(strings.Split(string(enabled[1]), ", "), "errcheck", "govet", "ineffassign", "staticcheck", "unused") // the standard ones
	directive := regexp.MustCompile(`//nolint(?::([a-z,]+))?( // .+)?`)
	seen := 0
	newTree(t).each(t, ".go", func(rel, text string) {
		if strings.HasPrefix(rel, "internal/archtest/") {
			return
		}
		for _, m := range directive.FindAllStringSubmatch(text, -1) {
			seen++
			if m[1] == "" || m[2] == "" {
				t.Errorf("%s: %q lacks its linters or its reason", rel, m[0])
			}
			for _, linter := range strings.Split(m[1], ",") {
				if !slices.Contains(run, linter) {
					t.Errorf("%s: linter %q does not run: %s", rel, linter, m[0])
				}
			}
		}
	})
	require.Positive(t, seen)
}
