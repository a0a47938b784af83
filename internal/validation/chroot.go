package validation

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// ownTargets are directories of a task that are never the machine's.
var ownTargets = []string{"alloc", "dev", "local", "proc", "secrets", "sys", "tmp"}

// ChrootPaths says what is wrong with a chroot_env: paths of the machine, and where a task sees them. No I/O.
func ChrootPaths(trees map[string]string) error {
	var errs []error
	seen := map[string]string{}
	for _, source := range slices.Sorted(maps.Keys(trees)) {
		target := trees[source]
		if other := seen[target]; other != "" {
			errs = append(errs, fmt.Errorf("%q and %q are to be seen at the same path", other, source))
		}
		seen[target] = source
		top, _, _ := strings.Cut(strings.TrimPrefix(target, "/"), "/")
		switch {
		case !filepath.IsAbs(source) || filepath.Clean(source) == "/":
			errs = append(errs, fmt.Errorf("%q is not an absolute path below /", source))
		case !filepath.IsAbs(target) || filepath.Clean(target) != target || target == "/":
			errs = append(errs, fmt.Errorf("%q: %q is not an absolute path below / without dots", source, target))
		case slices.Contains(ownTargets, top):
			errs = append(errs, fmt.Errorf("%q: a task has a /%s of its own", source, top))
		}
	}
	return errors.Join(errs...)
}
