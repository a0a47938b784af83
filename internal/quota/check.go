package quota

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/lazyregexp"
	"github.com/drover-project/drover/tenancy"
)

var (
	name       = lazyregexp.New(`^[a-zA-Z0-9-]{1,128}$`)
	word       = lazyregexp.New(`^[a-zA-Z0-9_.-]{1,128}$`)
	deviceName = lazyregexp.New(`^[^/\s]{1,128}(/[^/\s]{1,128}(/[^\s](.{0,126}[^\s])?)?)?$`)
)

// maxEntries bounds each list of a quota: they are read at each placement.
const maxEntries = 256

// Complete refuses a quota that cannot be meant, and gives each of its limits its hash. Errors: Invalid, NotImplemented for what is
// Nomad's and would limit nothing here; each with the field.
func Complete(q *tenancy.QuotaSpec) error {
	if !name().MatchString(q.Name) {
		return drover.Errorf(drover.Invalid, "invalid name %q. Must be 1 to 128 letters, digits or '-'", q.Name)
	}
	wrong := func(field, format string, args ...any) error {
		return drover.Errorf(drover.Invalid, "quota %q: %s: %s", q.Name, field, fmt.Sprintf(format, args...))
	}
	if len(q.Description) > 256 {
		return wrong("Description", "longer than 256 bytes")
	}
	if len(q.Limits) == 0 || len(q.Limits) > maxEntries {
		return wrong("Limits", "must provide at least one limit, and at most %d", maxEntries)
	}
	regions := map[string]bool{}
	for i, l := range q.Limits {
		field := fmt.Sprintf("Limits[%d]", i)
		switch {
		case l == nil:
			return wrong(field, "is null")
		case !word().MatchString(l.Region):
			return wrong(field+".Region", "must provide a region, got %q", l.Region)
		case regions[l.Region]:
			return wrong(field+".Region", "there are two limits for region %q", l.Region)
		}
		regions[l.Region] = true
		if err := checkResources(q.Name, field+".RegionLimit", l.RegionLimit); err != nil {
			return err
		}
		l.Hash = Hash(l)
	}
	return nil
}

// checkResources checks what holds in a region, and in each of its node pools.
func checkResources(quota, field string, r *tenancy.QuotaResources) error {
	if r == nil {
		return nil
	}
	if err := unheeded(quota, field, r.NUMA, r.SecretsMB, r.Storage != nil && r.Storage.HostVolumesMB != 0); err != nil {
		return err
	}
	if err := checkDevices(quota, field, r.Devices); err != nil {
		return err
	}
	if len(r.NodePools) > maxEntries {
		return drover.Errorf(drover.Invalid, "quota %q: %s.NodePools has %d entries, the limit is %d", quota, field, len(r.NodePools), maxEntries)
	}
	pools := map[string]bool{}
	for i, p := range r.NodePools {
		field := fmt.Sprintf("%s.NodePools[%d]", field, i)
		if p == nil || !word().MatchString(p.NodePool) || pools[p.NodePool] {
			return drover.Errorf(drover.Invalid, "quota %q: %s.NodePool: must be the name of a node pool that comes once", quota, field)
		}
		pools[p.NodePool] = true
		if err := unheeded(quota, field, p.NUMA, p.SecretsMB, p.Storage != nil && *p.Storage != tenancy.QuotaStorage{}); err != nil {
			return err
		}
		if err := checkDevices(quota, field, p.Devices); err != nil {
			return err
		}
	}
	return nil
}

// unheeded refuses what Nomad limits and nobody here would. Errors: NotImplemented.
func unheeded(quota, field string, numa *drover.NUMAResource, secrets *int, storage bool) error {
	for _, part := range []struct {
		name  string
		given bool
	}{
		{"NUMA", numa != nil}, {"SecretsMB", secrets != nil && *secrets != 0}, {"Storage", storage},
	} {
		if part.given {
			return drover.Errorf(drover.NotImplemented, "quota %q: %s.%s is not supported: nothing would be limited by it", quota, field, part.name)
		}
	}
	return nil
}

func checkDevices(quota, field string, list []*tenancy.QuotaDevice) error {
	if len(list) > maxEntries {
		return drover.Errorf(drover.Invalid, "quota %q: %s.Devices has %d entries, the limit is %d", quota, field, len(list), maxEntries)
	}
	seen := map[string]bool{}
	for i, d := range list {
		field := fmt.Sprintf("%s.Devices[%d]", field, i)
		switch {
		case d == nil || !deviceName().MatchString(d.Name) || seen[d.Name]:
			return drover.Errorf(drover.Invalid, "quota %q: %s.Name: must be type, vendor/type or vendor/type/name and come once", quota, field)
		case d.Count == nil || *d.Count > 1<<31:
			return drover.Errorf(drover.Invalid, "quota %q: %s.Count: how many may be used? 0: none, at most %d", quota, field, 1<<31)
		case len(d.Constraints)+len(d.Affinities) > 0:
			return drover.Errorf(drover.NotImplemented, "quota %q: %s: constraints and affinities are not supported", quota, field)
		}
		seen[d.Name] = true
	}
	return nil
}

// Hash is that of what a limit says.
func Hash(l *tenancy.QuotaLimit) []byte {
	bare := *l
	bare.Hash = nil
	text, err := json.Marshal(bare)
	if err != nil {
		panic(err) // it has numbers and texts only
	}
	sum := sha256.Sum256(text)
	return sum[:]
}

// key is a hash as Nomad's clients look for it.
func key(hash []byte) string { return base64.StdEncoding.EncodeToString(hash) }
