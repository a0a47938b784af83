package exchange

import (
	"context"
	"io"
)

// Migrations is control as it hands a node the data of allocations on other nodes that its own ones replace.
type Migrations interface {
	// Fetch writes the data of the allocation that the node's one replaces, as SnapshotFolder of its node gives it, once that has ended.
	// What was written before an error is of no use. Errors: as Controller's; NotFound where there is no such data, nor will be;
	// Internal where its node does not give it now. Forbidden for an allocation that is not the node's, or whose group does not
	// migrate its disk.
	Fetch(ctx context.Context, nodeID, allocID string, w io.Writer) error
}
