package feasible

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover"
)

// ComputedClass names the set of nodes that no constraint can tell apart, unless it asks for something unique: it
// hashes datacenter, pool, class, attributes and meta (without those named "unique.…"), and devices. Whoever
// registers a node stores it in Node.ComputedClass.
func ComputedClass(n *drover.Node) string {
	h := fnv.New64a()
	put := func(parts ...string) {
		for _, p := range parts {
			var size [4]byte
			binary.LittleEndian.PutUint32(size[:], uint32(len(p)))
			h.Write(size[:])
			h.Write([]byte(p))
		}
	}
	put(n.Datacenter, n.NodePool, n.NodeClass)
	for _, m := range []map[string]string{n.Attributes, n.Meta} {
		put("{")
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !strings.HasPrefix(k, "unique.") {
				put(k, m[k])
			}
		}
	}
	if n.NodeResources != nil {
		for _, d := range n.NodeResources.Devices {
			put("device", d.Vendor, d.Type, d.Name)
		}
	}
	return fmt.Sprintf("v1:%016x", h.Sum64())
}
