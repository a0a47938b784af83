package rotation

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Aside renames a file that grew, NAME.EXT, to NAME-TIME.EXT, so that another can be begun. Of those that were renamed before and of
// this one the newest stay, as many as keep says; 0 is all. Errors: those of the disk.
func Aside(path string, now time.Time, keep int) error {
	ext := filepath.Ext(path)
	base := strings.TrimSuffix(path, ext)
	if err := os.Rename(path, fmt.Sprintf("%s-%d%s", base, now.UnixNano(), ext)); err != nil {
		return err
	}
	if keep <= 0 {
		return nil
	}
	old, err := Former(path)
	if err != nil {
		return err
	}
	for _, path := range old[:max(0, len(old)-keep)] {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// Former are the files that Aside made of the one at the path, the oldest first. Errors: none that a path of the disk can cause.
func Former(path string) ([]string, error) {
	ext := filepath.Ext(path)
	base := strings.TrimSuffix(path, ext)
	old, err := filepath.Glob(escaped(base) + "-[0-9]*" + escaped(ext))
	if err != nil {
		return nil, err
	}
	old = slices.DeleteFunc(old, func(name string) bool { // a file of somebody else's, "NAME-2nd.EXT"
		return strings.Trim(name[len(base)+1:len(name)-len(ext)], "0123456789") != ""
	})
	slices.Sort(old) // all numbers have as many digits
	return old, nil
}

// escaped is a text as a part of a pattern.
func escaped(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(text)
}
