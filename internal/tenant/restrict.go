package tenant

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/claims"
	"github.com/drover-project/drover/tenancy"
)

// Pool is the node pool of the namespace's jobs that name none.
func Pool(ns *tenancy.Namespace) string {
	if ns == nil || ns.NodePoolConfiguration == nil {
		return drover.DefaultNodePool
	}
	return cmp.Or(ns.NodePoolConfiguration.Default, drover.DefaultNodePool)
}

// Refused says what of a canonical job its namespace does not allow, in Nomad's words where it has some.
func Refused(ns *tenancy.Namespace, j *drover.Job) (errs []error) {
	if ns == nil {
		return nil
	}
	if !AllowsPool(ns, j.NodePool) {
		errs = append(errs, fmt.Errorf("job.NodePool: namespace %q does not allow jobs to use node pool %q", ns.Name, j.NodePool))
	}
	errs = append(append(errs, refusedImages(ns, j)...), refusedClaims(ns, j)...)
	c := ns.Capabilities
	if c == nil {
		return errs
	}
	var drivers, modes []string
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		for _, n := range g.Networks {
			if n != nil {
				modes = refuse(modes, cmp.Or(n.Mode, "host"), c.EnabledNetworkModes, c.DisabledNetworkModes)
			}
		}
		for _, t := range g.Tasks {
			if t == nil {
				continue
			}
			drivers = refuse(drivers, t.Driver, c.EnabledTaskDrivers, c.DisabledTaskDrivers)
			if mode, ok := t.Config["network_mode"].(string); ok && mode != "" { // docker's, which needs no network of the group
				modes = refuse(modes, mode, c.EnabledNetworkModes, c.DisabledNetworkModes)
			}
			if hidden := hiddenMode(t.Config); hidden != "" && len(c.EnabledNetworkModes)+len(c.DisabledNetworkModes) > 0 {
				modes = refuse(modes, hidden, nil, []string{hidden})
			}
		}
	}
	errs = append(say(errs, "used task driver", drivers, ns.Name), refusedFiles(ns, j)...)
	return say(errs, "used group network mode", modes, ns.Name)
}

// refusedClaims says which extra claims the job's identities name that the namespace does not have.
func refusedClaims(ns *tenancy.Namespace, j *drover.Job) (errs []error) {
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		for _, t := range g.Tasks {
			if t == nil {
				continue
			}
			for _, w := range t.AllIdentities() {
				for _, name := range w.ExtraClaims {
					_, optional := ns.OptionalExtraClaims[name]
					_, required := ns.RequiredExtraClaims[name]
					if !optional && !required {
						errs = append(errs, fmt.Errorf("task %q: identity %q: namespace %q has no extra claim %q",
							t.Name, cmp.Or(w.Name, claims.Default), ns.Name, name))
					}
				}
			}
		}
	}
	return errs
}

// hiddenMode is the interpolated key or value of a task's configuration that a node may turn into a network mode, "" if there is none.
func hiddenMode(config map[string]any) string {
	if mode, ok := config["network_mode"].(string); ok && strings.Contains(mode, "${") {
		return mode
	}
	return replacedKey(config)
}

// AllowsPool reports whether the namespace's jobs may use the node pool.
func AllowsPool(ns *tenancy.Namespace, pool string) bool {
	c := ns.NodePoolConfiguration
	switch {
	case c == nil || pool == Pool(ns):
		return true
	case c.Allowed != nil:
		return slices.ContainsFunc(c.Allowed, func(glob string) bool { return Matches(glob, pool) })
	}
	return !slices.ContainsFunc(c.Denied, func(glob string) bool { return Matches(glob, pool) })
}

// refuse appends what is not enabled, or disabled, to those that were refused before.
func refuse(refused []string, what string, enabled, disabled []string) []string {
	if (len(enabled) == 0 || slices.Contains(enabled, what)) && !slices.Contains(disabled, what) || slices.Contains(refused, what) {
		return refused
	}
	return append(refused, what)
}

// say appends one error about all that is refused of a kind.
func say(errs []error, kind string, refused []string, namespace string) []error {
	switch len(refused) {
	case 0:
		return errs
	case 1:
		return append(errs, fmt.Errorf("%s %q is not allowed in namespace %q", kind, refused[0], namespace))
	}
	return append(errs, fmt.Errorf("%ss %q are not allowed in namespace %q", kind, refused, namespace))
}

// Matches reports whether the text is the glob's, in which * stands for any text.
func Matches(glob, text string) bool {
	first, rest, star := strings.Cut(glob, "*")
	if !star {
		return glob == text
	}
	text, ok := strings.CutPrefix(text, first)
	if !ok {
		return false
	}
	for {
		part, next, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(text, part)
		}
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text, rest = text[i+len(part):], next
	}
}
