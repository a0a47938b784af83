package supervised

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/supervisor"
)

// startFile, beside the supervisor's socket, holds the driver.State of its task.
const startFile = "start.json"

// Keep leaves the state with the supervisor before the program is executed. If the agent is killed before it has stored the state, the
// next one finds the task by this copy, and does not start it twice.
func Keep(stateDir string, state driver.State) error {
	data, err := json.Marshal(state)
	if err == nil {
		err = os.WriteFile(filepath.Join(stateDir, startFile), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keeping the state of a start: %w", err)
	}
	return nil
}

// Kept completes the state of a start that the agent's end interrupted (its Data is empty); interrupted tells that it was
// one: what it started counts only if Started says so. Errors: driver.ErrGone if it did not come so far.
func Kept(state driver.State) (_ driver.State, interrupted bool, err error) {
	if len(state.Data) > 0 {
		return state, false, nil
	}
	var kept driver.State
	data, err := os.ReadFile(filepath.Join(state.StateDir, startFile))
	if err == nil {
		err = json.Unmarshal(data, &kept)
	}
	if err != nil || kept.ID != state.ID || len(kept.Data) == 0 {
		return state, true, fmt.Errorf("the start %s was interrupted: %w", state.ID, driver.ErrGone)
	}
	return kept, true, nil
}

// Started tells whether the program of the start with the id was executed; it may have ended since.
func Started(ctx context.Context, client *supervisor.Client, id string) bool {
	if client.ID() != id {
		return false
	}
	started, err := client.TaskStarted(ctx)
	return err == nil && started
}
