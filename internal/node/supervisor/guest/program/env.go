package program

import (
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// defaultPath is what docker gives to containers whose image says nothing.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment merges maps, later ones win, and returns KEY=value sorted by key.
func environment(base map[string]string, layers ...map[string]string) []string {
	all := maps.Clone(base)
	for _, l := range layers {
		maps.Copy(all, l)
	}
	env := make([]string, 0, len(all))
	for _, k := range slices.Sorted(maps.Keys(all)) {
		env = append(env, k+"="+all[k])
	}
	return env
}

// Visible returns the variables whose names do not begin with the prefix; "" hides none.
func Visible(env map[string]string, hidden string) map[string]string {
	if hidden == "" {
		return env
	}
	left := maps.Clone(env)
	maps.DeleteFunc(left, func(name, _ string) bool { return strings.HasPrefix(name, hidden) })
	return left
}

// envValue is a variable's value, "" if it is not set.
func envValue(env []string, key string) string {
	for _, kv := range env {
		if k, v, _ := strings.Cut(kv, "="); k == key {
			return v
		}
	}
	return ""
}

// lookPath finds a program as execvp would: a name with a slash is taken as it is, relative to dir.
func lookPath(name, dir, search string) (string, syscall.Errno) {
	if name == "" {
		return "", syscall.ENOENT
	}
	if strings.Contains(name, "/") {
		return name, 0
	}
	errno := syscall.ENOENT
	for _, d := range strings.Split(search, ":") {
		p := path.Join(d, name)
		if !path.IsAbs(p) {
			p = path.Join(dir, p)
		}
		st, err := os.Stat(p)
		if err != nil || st.IsDir() {
			continue
		}
		if st.Mode()&0o111 != 0 {
			return p, 0
		}
		errno = syscall.EACCES
	}
	return "", errno
}
