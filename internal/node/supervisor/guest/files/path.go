package files

import (
	"path"
	"strings"

	"github.com/drover-project/drover"
)

// absolute resolves a path of a request: relative ones start at the working directory. Errors: Invalid.
func (s *Files) absolute(p string) (string, error) {
	if strings.ContainsRune(p, 0) {
		return "", drover.Errorf(drover.Invalid, "path %q has a zero byte", p)
	}
	base := s.boot().WorkDir
	if base == "" {
		base = "/"
	}
	if path.IsAbs(p) {
		return path.Clean(p), nil
	}
	return path.Join(base, p), nil
}

// asDirectory keeps what the end of a path that was asked for says: that it is a directory's. The kernel then refuses
// anything else (ENOTDIR), as it does for every program.
func asDirectory(asked, p string) string {
	if namesDirectory(asked) {
		return p + "/"
	}
	return p
}

// namesDirectory reports whether a path, by its spelling, can only be a directory; path.Clean loses this.
func namesDirectory(asked string) bool {
	return strings.HasSuffix(asked, "/") || strings.HasSuffix(asked, "/.")
}
