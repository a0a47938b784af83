package fake

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover"
)

// options are mock_driver's.
type options struct {
	runFor                time.Duration
	runForSet             bool
	exitCode, exitSignal  int
	exitErr               string
	startError            string
	startErrorRecoverable bool
	startBlockFor         time.Duration
	stdout, stderr        speech
	killAfter             time.Duration
	signalError           string
	oom                   bool
}

// speech is what a task writes to one stream.
type speech struct {
	text   string
	repeat int           // times after the first
	every  time.Duration // between two; 0 = all at once
}

// Validate checks Task.Config: all problems at once. Errors: Invalid.
func (d *Driver) Validate(task *drover.Task) error {
	_, err := parse(task.Config)
	return err
}

// parse reads a task's configuration; its error names every wrong key, in the order of the keys.
func parse(config map[string]any) (o options, err error) {
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if err := o.set(key, config[key]); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", key, err))
		}
	}
	if len(problems) > 0 {
		return o, drover.Errorf(drover.Invalid, "%w", errors.Join(problems...))
	}
	return o, nil
}

// set takes one key of Nomad's mock_driver. Keys that only matter to a plugin or a network are accepted, so that jobs written for Nomad's
// tests run unchanged.
func (o *options) set(key string, v any) (err error) {
	switch key {
	case "run_for":
		o.runFor, err = duration(v)
		o.runForSet = true
	case "exit_code":
		o.exitCode, err = number(v)
	case "exit_signal":
		o.exitSignal, err = number(v)
	case "exit_err_msg":
		o.exitErr, err = text(v)
	case "oom_killed":
		o.oom, err = truth(v)
	case "start_error":
		o.startError, err = text(v)
	case "start_error_recoverable":
		o.startErrorRecoverable, err = truth(v)
	case "start_block_for":
		o.startBlockFor, err = duration(v)
	case "stdout_string":
		o.stdout.text, err = text(v)
	case "stderr_string":
		o.stderr.text, err = text(v)
	case "stdout_repeat":
		o.stdout.repeat, err = number(v)
	case "stderr_repeat":
		o.stderr.repeat, err = number(v)
	case "stdout_repeat_duration":
		o.stdout.every, err = duration(v)
	case "stderr_repeat_duration":
		o.stderr.every, err = duration(v)
	case "kill_after":
		o.killAfter, err = duration(v)
	case "signal_error":
		o.signalError, err = text(v)
	case "plugin_exit_after", "driver_ip", "driver_advertise", "driver_port_map", "exec_command", "command", "args", "image":
		// Accepted without an effect: there is no plugin, network or program.
	default:
		return errors.New("the fake driver has no such option")
	}
	return err
}

// text, truth, number and duration take the types that HCL and JSON may give a value. Nomad decodes weakly, so strings that look like the
// type are accepted too.
func text(v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	return "", fmt.Errorf("%T is not a string", v)
}

// truth takes "true", "1" and their like, as strconv.ParseBool does.
func truth(v any) (bool, error) {
	switch b := v.(type) {
	case bool:
		return b, nil
	case string:
		return strconv.ParseBool(b)
	}
	return false, fmt.Errorf("%T is not a boolean", v)
}

// number also takes what JSON makes of a whole number, a float64, and cuts a fraction off.
func number(v any) (int, error) {
	switch n := v.(type) {
	case int:
		return n, nil
	case int64:
		return int(n), nil
	case uint64:
		return int(n), nil
	case float64:
		return int(n), nil
	case string:
		return strconv.Atoi(n)
	}
	return 0, fmt.Errorf("%T is not a number", v)
}

// duration takes "10s", or a number of nanoseconds.
func duration(v any) (time.Duration, error) {
	switch d := v.(type) {
	case time.Duration:
		return d, nil
	case string:
		return time.ParseDuration(d)
	}
	n, err := number(v)
	return time.Duration(n), err
}
