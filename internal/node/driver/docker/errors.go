package docker

import (
	"context"
	"errors"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
)

// final are parts of what dockerd and the runtime say about tasks that will never start, whatever the code it has.
var final = []string{ // a constant
	"unknown or invalid runtime name", "no such file or directory", "invalid mount config", "not a directory", "unknown capability",
	"invalid ulimit", "network not found", "operation not permitted", "linux spec capabilities", "is not an absolute path",
}

// startError says whether trying again can help.
func startError(err error) error {
	if err == nil {
		return nil
	}
	if e := (*driver.StartError)(nil); errors.As(err, &e) {
		return err
	}
	// What is not known can be tried again: the job's restart policy bounds how often.
	recoverable := true
	switch drover.CodeOf(err) {
	case drover.Invalid, drover.NotFound, drover.Forbidden, drover.NotImplemented:
		recoverable = false
	case drover.Unavailable:
	default:
		// The daemon answers 500 for many mistakes of a job, so only the text tells them from its own failures.
		for _, text := range final {
			if strings.Contains(strings.ToLower(err.Error()), text) && !errors.Is(err, context.Canceled) {
				recoverable = false
			}
		}
	}
	return &driver.StartError{Recoverable: recoverable, Err: err}
}
