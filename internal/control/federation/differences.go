package federation

import (
	"bytes"
	"maps"
	"reflect"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/optional"
)

// Differences are the commands that make the objects here those that are there. Deletions come last, and each by itself: one
// that is refused holds nothing else up.
func Differences(here, there Objects) (out []command.Command) {
	namespaces, goneNamespaces := compare(here.Namespaces, there.Namespaces, func(n *drover.Namespace) string { return n.Name }, sameNamespace)
	pools, gonePools := compare(here.Pools, there.Pools, func(p *drover.NodePool) string { return p.Name }, samePool)
	for _, p := range pools {
		if !builtIn(p) {
			out = append(out, &command.UpsertNodePools{Pools: []*drover.NodePool{p}})
		}
	}
	quotas, goneQuotas := compare(here.Quotas, there.Quotas, func(q *drover.QuotaSpec) string { return q.Name }, sameQuota)
	for _, q := range quotas { // before the namespaces that refer to them
		next := *q
		next.Here = here.Region
		out = append(out, &command.UpsertQuotas{Quotas: []*drover.QuotaSpec{&next}})
	}
	for _, n := range namespaces {
		out = append(out, &command.UpsertNamespaces{Namespaces: []*drover.Namespace{n}})
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

// compare returns what is there and not the same here, and what is only here.
func compare[T any](here, there []T, name func(T) string, same func(a, b T) bool) (changed, gone []T) {
	left := make(map[string]T, len(here))
	for _, h := range here {
		left[name(h)] = h
	}
	for _, t := range there {
		if h, ok := left[name(t)]; !ok || !same(h, t) {
			changed = append(changed, t)
		}
		delete(left, name(t))
	}
	for _, h := range here {
		if _, ok := left[name(h)]; ok {
			gone = append(gone, h)
		}
	}
	return changed, gone
}

// sameNamespace compares all but the indexes, which are each region's own. No metadata is the same as empty metadata.
func sameNamespace(a, b *drover.Namespace) bool {
	return a.Description == b.Description && a.Quota == b.Quota && maps.Equal(a.Meta, b.Meta) &&
		reflect.DeepEqual(a.Capabilities, b.Capabilities) && reflect.DeepEqual(a.NodePoolConfiguration, b.NodePoolConfiguration) &&
		reflect.DeepEqual(a.Images, b.Images)
}

// sameQuota compares all but the indexes and the region. The hashes tell the limits apart.
func sameQuota(a, b *drover.QuotaSpec) bool {
	return a.Description == b.Description &&
		slices.EqualFunc(a.Limits, b.Limits, func(x, y *drover.QuotaLimit) bool { return bytes.Equal(x.Hash, y.Hash) })
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
