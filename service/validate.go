package service

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/validation"
)

// Validate checks the services of a group or of one of its tasks. Their ports may be labels of the whole group,
// numbers, or interpolations that only the node can resolve.
func Validate(v *validation.Report, at string, knowsPort func(label string) bool, list []*Service) {
	for i, s := range list {
		if s == nil {
			v.Addf(fmt.Sprintf("%s.Services[%d]", at, i), "must not be null")
			continue
		}
		where := fmt.Sprintf("%s.service[%s]", at, validation.NameOr(s.Name, i))
		provided := s.Provider == ProviderNomad || s.Provider == ProviderConsul
		v.Check(provided, where+".Provider", "must be nomad or consul, got %q", s.Provider)
		v.Check(len(s.Name) <= 63 && !strings.ContainsAny(s.Name, " \x00/"), where+".Name", "must be usable in DNS, got %q", s.Name)
		v.Check(knowsPort(s.PortLabel), where+".PortLabel", "the group has no port %q", s.PortLabel)
		v.Check(slices.Contains(addressModes, s.AddressMode), where+".AddressMode", "must be %s, got %q", strings.Join(addressModes, ", "),
			s.AddressMode)
		v.Check(s.Address == "" || s.AddressMode == AddressModeAuto, where+".Address", "needs the address mode auto, got %q", s.AddressMode)
		v.Check(slices.Contains(onUpdates, s.OnUpdate), where+".OnUpdate", "must be %s, got %q", strings.Join(onUpdates, ", "), s.OnUpdate)
	}
}

var (
	addressModes = AddressModes()
	onUpdates    = []string{OnUpdateRequireHealthy, OnUpdateIgnoreWarnings, OnUpdateIgnore}
)

// ChecksOf counts the checks of services.
func ChecksOf(services []*Service) (n int) {
	for _, s := range services {
		if s != nil {
			n += len(s.Checks)
		}
	}
	return n
}
