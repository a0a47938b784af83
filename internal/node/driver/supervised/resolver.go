package supervised

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/network"
)

// Resolver writes the resolver's configuration that the task's group asks for beside the task's state, and returns its
// path; "" if the group asks for none.
func Resolver(spec *driver.Spec) (string, error) {
	if len(spec.Networks) == 0 || spec.Networks[0].DNS == nil {
		return "", nil
	}
	return WriteResolver(spec, *spec.Networks[0].DNS)
}

// WriteResolver writes such a configuration; "" if it says nothing.
func WriteResolver(spec *driver.Spec, d network.DNSConfig) (string, error) {
	var b strings.Builder
	for _, s := range d.Servers {
		b.WriteString("nameserver " + s + "\n")
	}
	for key, words := range map[string][]string{"search": d.Searches, "options": d.Options} {
		if len(words) > 0 {
			b.WriteString(key + " " + strings.Join(words, " ") + "\n")
		}
	}
	if b.Len() == 0 {
		return "", nil
	}
	return WriteFile(spec, "resolv.conf", b.String())
}

// WriteFile writes a file that is to be mounted into the task, beside its state, and returns its path.
func WriteFile(spec *driver.Spec, name, text string) (string, error) {
	path := filepath.Join(spec.Dirs.State, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { // the task reads it
		return "", fmt.Errorf("writing the task's %s: %w", name, err)
	}
	return path, nil
}
