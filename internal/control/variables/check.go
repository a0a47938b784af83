package variables

import (
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/lazyregexp"
	"github.com/drover-project/drover/secrets"
)

const (
	// maxBytes bounds the keys and values of a variable together, as Nomad does.
	maxBytes = 64 << 10
	// The times of locks, as Nomad's.
	defaultTTL = 15 * time.Second
	minTTL     = 10 * time.Second
	maxTTL     = 24 * time.Hour
)

// validPath is what paths are made of.
var validPath = lazyregexp.New(`^[a-zA-Z0-9-_~/]{1,128}$`)

// checkPath refuses what is no path, and those that are kept for other things. Errors: Invalid.
func checkPath(path string) error {
	if path == "" {
		return drover.Errorf(drover.Invalid, "missing required Path")
	}
	if !validPath().MatchString(path) || strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
		return drover.Errorf(drover.Invalid, "invalid path %q: it has 1 to 128 letters, digits, - _ ~ and /, and no / at its ends", path)
	}
	first, rest, _ := strings.Cut(path, "/")
	second, _, _ := strings.Cut(rest, "/")
	if first == "nomad" && second != "jobs" && second != "job-templates" {
		return drover.Errorf(drover.Invalid,
			"path %q: below nomad only nomad/jobs, nomad/job-templates and what is below them are variables", path)
	}
	return nil
}

// checkItems refuses variables without items, and too large ones. Errors: Invalid, TooLarge; none has an item.
func checkItems(items map[string]string) error {
	switch {
	case items == nil:
		return drover.Errorf(drover.Invalid, "variable missing required Items object")
	case len(items) == 0:
		return drover.Errorf(drover.Invalid, "Items: a variable has at least one")
	}
	size := 0
	for key, value := range items {
		if key == "" {
			return drover.Errorf(drover.Invalid, "Items: a key is empty")
		}
		size += len(key) + len(value)
	}
	if size > maxBytes {
		return drover.Errorf(drover.Invalid, "variables are limited to 64KiB in total size, this one has %d bytes", size)
	}
	return nil
}

// lockOf reads the times of a lock that is asked for. Errors: Invalid.
func lockOf(l *secrets.VariableLock) (*secrets.Lock, error) {
	out := &secrets.Lock{TTL: defaultTTL, Delay: defaultTTL}
	if l == nil {
		return out, nil
	}
	out.ID = l.ID
	for _, x := range []struct {
		name, text string
		least      time.Duration
		into       *time.Duration
	}{{"Lock.TTL", l.TTL, minTTL, &out.TTL}, {"Lock.LockDelay", l.LockDelay, 0, &out.Delay}} {
		if x.text == "" {
			continue
		}
		d, err := time.ParseDuration(x.text)
		if err != nil || d < x.least || d > maxTTL {
			return nil, drover.Errorf(drover.Invalid, "%s: must be a duration from %s to %s, got %q", x.name, x.least, maxTTL, x.text)
		}
		*x.into = d
	}
	return out, nil
}
