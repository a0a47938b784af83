package options

import (
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/validation"
)

// Permitted refuses a task's user if the node's configuration denies it, or one of its groups. Errors: Forbidden.
func Permitted(name string, uid uint32, groups []uint32, deniedUIDs, deniedGIDs validation.IDs) error {
	if deniedUIDs.Has(uid) {
		return drover.Errorf(drover.Forbidden, "user: %q has the id %d, which this node denies (denied_host_uids)", name, uid)
	}
	if i := slices.IndexFunc(groups, deniedGIDs.Has); i >= 0 {
		return drover.Errorf(drover.Forbidden, "user: %q is in the group %d, which this node denies (denied_host_gids)", name, groups[i])
	}
	return nil
}
