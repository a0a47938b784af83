package tenant

import (
	"regexp"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/claims"
	"github.com/drover-project/drover/internal/lazyregexp"
	"github.com/drover-project/drover/tenancy"
)

// maxEntries bounds each list of a namespace; they are read at each registration.
const maxEntries = 256

var (
	word     = lazyregexp.New(`^[a-zA-Z0-9_./-]{1,128}$`)
	poolGlob = lazyregexp.New(`^[a-zA-Z0-9_*-]{1,128}$`)
)

// Check refuses restrictions of a namespace that cannot be meant. hasPool reports whether there is a node pool of the name. Errors:
// Invalid, with the field.
func Check(ns *tenancy.Namespace, hasPool func(string) bool) error {
	if c := ns.Capabilities; c != nil {
		for _, l := range []struct {
			field string
			list  []string
		}{
			{"Capabilities.EnabledTaskDrivers", c.EnabledTaskDrivers},
			{"Capabilities.DisabledTaskDrivers", c.DisabledTaskDrivers},
			{"Capabilities.EnabledNetworkModes", c.EnabledNetworkModes},
			{"Capabilities.DisabledNetworkModes", c.DisabledNetworkModes},
		} {
			if err := checkList(ns.Name, l.field, l.list, word()); err != nil {
				return err
			}
		}
		for i, mode := range slices.Concat(c.EnabledNetworkModes, c.DisabledNetworkModes) {
			if mode != "host" && mode != "bridge" && mode != "none" && !regexp.MustCompile(`^(cni|container)[:/].+`).MatchString(mode) {
				field := "EnabledNetworkModes"
				if i >= len(c.EnabledNetworkModes) {
					field = "DisabledNetworkModes"
				}
				return drover.Errorf(drover.Invalid, "namespace %q: Capabilities.%s: %q is no network mode: host, bridge, none or cni/NAME",
					ns.Name, field, mode)
			}
		}
	}
	if err := checkImages(ns); err != nil {
		return err
	}
	if err := claims.CheckExtra(ns); err != nil {
		return err
	}
	c := ns.NodePoolConfiguration
	if c == nil {
		return nil
	}
	if c.Allowed != nil && len(c.Denied) > 0 {
		return drover.Errorf(drover.Invalid, "namespace %q: NodePoolConfiguration: Allowed and Denied cannot both be set", ns.Name)
	}
	if err := checkList(ns.Name, "NodePoolConfiguration.Allowed", c.Allowed, poolGlob()); err != nil {
		return err
	}
	if err := checkList(ns.Name, "NodePoolConfiguration.Denied", c.Denied, poolGlob()); err != nil {
		return err
	}
	if c.Default != "" && !hasPool(c.Default) {
		return drover.Errorf(drover.Invalid, "namespace %q: NodePoolConfiguration.Default: nonexistent node pool %q", ns.Name, c.Default)
	}
	return nil
}

func checkList(namespace, field string, list []string, form *regexp.Regexp) error {
	if len(list) > maxEntries {
		return drover.Errorf(drover.Invalid, "namespace %q: %s has %d entries, the limit is %d", namespace, field, len(list), maxEntries)
	}
	for _, e := range list {
		if !form.MatchString(e) {
			return drover.Errorf(drover.Invalid, "namespace %q: %s: %q is no name", namespace, field, e)
		}
	}
	return nil
}
