package supervisor

import (
	"os"
	"path/filepath"
	"strings"
)

// processesLike lists running processes by their command line.
func processesLike(text string) (found []string) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, n := range names {
		b, _ := os.ReadFile(n)
		line := strings.ReplaceAll(strings.TrimRight(string(b), "\x00"), "\x00", " ")
		if strings.HasPrefix(line, text) {
			found = append(found, line)
		}
	}
	return found
}
