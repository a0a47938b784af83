package rawexec

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"drover"
)

// taskConfig is Task.Config of this driver.
type taskConfig struct {
	command string
	args    []string
}

// Validate checks Task.Config: all problems at once, each naming its key. Errors: Invalid.
func (d *Driver) Validate(task *drover.Task) error {
	c, err := parse(task.Config)
	if err != nil {
		return err
	}
	if c.command == "" {
		return errNoCommand()
	}
	return nil
}

func errNoCommand() error {
	return drover.Errorf(drover.Invalid, "command: a raw_exec task needs the path of a program")
}

func parse(config map[string]any) (c taskConfig, err error) {
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(config)) {
		v := config[key]
		var ok bool
		switch key {
		case "command":
			c.command, ok = v.(string)
		case "args":
			c.args, ok = stringList(v)
		default:
			problems = append(problems, fmt.Errorf("%s: raw_exec has no such option; it has: command, args", key))
			continue
		}
		if !ok {
			problems = append(problems, fmt.Errorf("%s: %T is the wrong type", key, v))
		}
	}
	if len(problems) > 0 {
		return c, drover.Errorf(drover.Invalid, "%w", errors.Join(problems...))
	}
	return c, nil
}

// stringList takes what JSON, HCL and Go code give for a list of strings.
func stringList(v any) ([]string, bool) {
	switch l := v.(type) {
	case nil:
		return nil, true
	case []string:
		return l, true
	case []any:
		list := make([]string, 0, len(l))
		for _, e := range l {
			switch s := e.(type) {
			case string:
				list = append(list, s)
			case int, int64, float64, bool:
				list = append(list, fmt.Sprint(s))
			default:
				return nil, false
			}
		}
		return list, true
	default:
		return nil, false
	}
}
