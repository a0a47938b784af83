package agent

import (
	"context"
	"fmt"

	"github.com/drover-project/drover/internal/node/cloud"
)

// Clouds asks the cloud that the machine is in about it; node/cloud does.
type Clouds interface {
	// Run calls tell for what it finds, and returns when there is no more to ask. Errors: the agent shall not go on without an answer.
	Run(ctx context.Context, tell func(cloud.Found)) error
}

// askClouds registers the node again with what its cloud tells about the machine. It runs beside the first registration, as a service
// that does not answer must not keep the node from its work; one that has allocations waits for cloud.Wait. Errors: the agent shall not go
// on without an answer.
func (a *Agent) askClouds(ctx context.Context) error {
	defer once(a.heard)
	if a.clouds == nil {
		return nil
	}
	err := a.clouds.Run(ctx, func(found cloud.Found) {
		a.amend(found.AddTo)
		a.log.Info("the node's cloud told about the machine", "links", found.Links, "attributes", len(found.Attributes))
		once(a.heard)
		a.again.Send()
	})
	if err != nil {
		return fmt.Errorf("client.fingerprint: exit_on_failure is set, and %w", err)
	}
	return nil
}
