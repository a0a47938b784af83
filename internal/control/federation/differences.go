package federation

import (
	"bytes"
	"maps"
	"reflect"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/tenancy"
)

// Differences are the commands that make the objects here those that are there. What takes rights away comes first, other deletions last,
// and each of these by itself: one that is refused holds nothing else up.
func Differences(here, there Objects) (out []command.Command) {
	if here.Access != nil && there.Access != nil {
		out = accessDifferences(here.Access, there.Access)
	}
	newNamespaces, goneNamespaces := compare(namespaces, here.Namespaces, there.Namespaces)
	newPools, gonePools := compare(pools, here.Pools, there.Pools)
	newQuotas, goneQuotas := compare(quotas, here.Quotas, there.Quotas)
	newRules, goneRules := compare(rules, here.Rules, there.Rules)
	for _, r := range newRules {
		out = append(out, &command.UpsertAdmissionRules{Rules: []*drover.AdmissionRule{r}})
	}
	for _, r := range goneRules {
		out = append(out, &command.DeleteAdmissionRules{Names: []string{r.Name}})
	}
	for _, p := range newPools {
		if !builtIn(p) {
			out = append(out, &command.UpsertNodePools{Pools: []*drover.NodePool{p}})
		}
	}
	for _, q := range newQuotas { // before the namespaces that refer to them
		next := *q
		next.Here = here.Region
		out = append(out, &command.UpsertQuotas{Quotas: []*tenancy.QuotaSpec{&next}})
	}
	for _, n := range newNamespaces {
		out = append(out, &command.UpsertNamespaces{Namespaces: []*tenancy.Namespace{n}})
	}
	for _, n := range goneNamespaces {
		if n.Name != drover.DefaultNamespace {
			out = append(out, &command.DeleteNamespaces{Names: []string{n.Name}})
		}
	}
	for _, q := range goneQuotas {
		out = append(out, &command.DeleteQuotas{Names: []string{q.Name}})
	}
	for _, p := range gonePools {
		if !builtIn(p) {
			out = append(out, &command.DeleteNodePools{Names: []string{p.Name}})
		}
	}
	return out
}

// builtIn reports whether every cluster has the pool, which nobody can change.
func builtIn(p *drover.NodePool) bool {
	return p.Name == drover.DefaultNodePool || p.Name == drover.AllNodePool
}

// sameNamespace compares all but the indexes, which are each region's own. No metadata is the same as empty metadata.
func sameNamespace(a, b *tenancy.Namespace) bool {
	return a.Description == b.Description && a.Quota == b.Quota && maps.Equal(a.Meta, b.Meta) &&
		reflect.DeepEqual(a.Capabilities, b.Capabilities) && reflect.DeepEqual(a.NodePoolConfiguration, b.NodePoolConfiguration) &&
		reflect.DeepEqual(a.Images, b.Images) && maps.Equal(a.RequiredExtraClaims, b.RequiredExtraClaims) &&
		maps.Equal(a.OptionalExtraClaims, b.OptionalExtraClaims)
}

// sameQuota compares all but the indexes and the region. The hashes tell the limits apart.
func sameQuota(a, b *tenancy.QuotaSpec) bool {
	return a.Description == b.Description &&
		slices.EqualFunc(a.Limits, b.Limits, func(x, y *tenancy.QuotaLimit) bool { return bytes.Equal(x.Hash, y.Hash) })
}

// sameRule compares all but the indexes.
func sameRule(a, b *drover.AdmissionRule) bool {
	x, y := *a, *b
	x.CreateIndex, x.ModifyIndex, y.CreateIndex, y.ModifyIndex = 0, 0, 0, 0
	return bytes.Equal(
		encoded(&command.UpsertAdmissionRules{Rules: []*drover.AdmissionRule{&x}}),
		encoded(&command.UpsertAdmissionRules{Rules: []*drover.AdmissionRule{&y}}),
	)
}

func samePool(a, b *drover.NodePool) bool {
	return a.Description == b.Description && a.NodeIdentityTTL == b.NodeIdentityTTL && maps.Equal(a.Meta, b.Meta) &&
		sameScheduling(a.SchedulerConfiguration, b.SchedulerConfiguration)
}

func sameScheduling(a, b *drover.NodePoolSchedulerConfiguration) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := a.MemoryOversubscriptionEnabled, b.MemoryOversubscriptionEnabled
	return a.SchedulerAlgorithm == b.SchedulerAlgorithm && (x == nil) == (y == nil) && optional.Value(x) == optional.Value(y)
}
