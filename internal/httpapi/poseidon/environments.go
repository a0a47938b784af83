package poseidon

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// executionEnvironment has its keys in the contract's order.
type executionEnvironment struct {
	ExecutionEnvironmentRequest
	ID int `json:"id"`
}

// ExecutionEnvironmentRequest has Poseidon's name: it stands in the texts of decoding errors.
type ExecutionEnvironmentRequest struct {
	PrewarmingPoolSize uint     `json:"prewarmingPoolSize"`
	CPULimit           uint     `json:"cpuLimit"`
	MemoryLimit        uint     `json:"memoryLimit"`
	Image              string   `json:"image"`
	NetworkAccess      bool     `json:"networkAccess"`
	ExposedPorts       []uint16 `json:"exposedPorts"`
}

// asAskedKey holds, in an environment's meta, the fields that would not come back as they were put.
const asAskedKey = "poseidon"

// asAsked are the values of a request that the service may replace by its defaults. Answers show them as they were
// put.
type asAsked struct {
	CPULimit     uint     `json:"cpuLimit"`
	MemoryLimit  uint     `json:"memoryLimit"`
	ExposedPorts []uint16 `json:"exposedPorts"`
}

// reservedMB is what the scheduler counts for a runner; its limit is memoryLimit. Poseidon has 50.
const reservedMB = 32

// leastMB is the least that a task can have, in Nomad as here.
const leastMB = 10

// putEnvironment creates an environment (201) or replaces it (204), both without a body, as Poseidon. Any error of
// the read counts as "there is none": if the state cannot be read, the write fails with a better reason.
func (f *Face) putEnvironment(w http.ResponseWriter, r *http.Request) error {
	var req ExecutionEnvironmentRequest
	if err := decode(r, &req); err != nil {
		return err
	}
	id, err := environmentID(r)
	if err != nil {
		return err
	}
	base, err := f.Environments.Environment(r.Context(), strconv.Itoa(id))
	if err != nil { // there is none
		base = execution.Environment{Driver: f.Driver}
	}
	env, err := toEnvironment(base, id, req)
	if err != nil {
		return err
	}
	created, err := f.Environments.PutEnvironment(r.Context(), env)
	if err != nil {
		return err
	}
	if created {
		w.WriteHeader(http.StatusCreated)
		return nil
	}
	// who claims next expects a runner as it was put; if that fails or takes longer, the old ones serve until then
	_ = f.Environments.AwaitRollout(r.Context(), env.ID, rolloutPatience)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// rolloutPatience bounds how long a replacement's answer waits for the new runners: with the image there, a pool of a
// hundred is replaced in this time. Poseidon itself answers when it has registered them all.
const rolloutPatience = 3 * time.Second

// toEnvironment puts the request onto the environment as it is: what Poseidon has no fields for, its isolation, user or
// constraints, was set by other means and stays.
func toEnvironment(base execution.Environment, id int, req ExecutionEnvironmentRequest) (env execution.Environment, err error) {
	const limit = 1<<31 - 1
	if req.CPULimit > limit || req.MemoryLimit > limit || req.PrewarmingPoolSize > limit {
		return env, &reply{status: http.StatusBadRequest, message: "limit too high"}
	}
	if req.MemoryLimit > 0 && req.MemoryLimit < leastMB {
		return env, &reply{
			status:  http.StatusBadRequest,
			message: fmt.Sprintf("memoryLimit %d: want at least %d MB, or 0", req.MemoryLimit, leastMB),
		}
	}
	asked, err := json.Marshal(asAsked{req.CPULimit, req.MemoryLimit, req.ExposedPorts})
	if err != nil {
		return env, err
	}
	env = base
	env.ID, env.Image, env.PoolSize, env.CPU = strconv.Itoa(id), req.Image, int(req.PrewarmingPoolSize), int(req.CPULimit)
	env.MemoryMaxMB, env.MemoryMB = int(req.MemoryLimit), min(reservedMB, int(req.MemoryLimit))
	env.Network, env.ExposedPorts = req.NetworkAccess, req.ExposedPorts
	env.Meta = map[string]string{}
	maps.Copy(env.Meta, base.Meta)
	env.Meta[asAskedKey] = string(asked)
	return env, nil
}

// fromEnvironment renders an environment as the contract has it. ok is false if its id is not a number, which the
// contract's type requires. What was asked for comes from the meta, unless other means made the environment.
func fromEnvironment(env execution.Environment) (out executionEnvironment, ok bool) {
	id, err := strconv.Atoi(env.ID)
	if err != nil || id < 0 {
		return out, false // made by other means, not nameable here
	}
	asked := asAsked{uint(env.CPU), uint(env.MemoryMaxMB), env.ExposedPorts}
	if text, has := env.Meta[asAskedKey]; has {
		_ = json.Unmarshal([]byte(text), &asked) // ours; if somebody changed it, what is in force is shown
	}
	return executionEnvironment{ExecutionEnvironmentRequest{
		uint(env.PoolSize), asked.CPULimit, asked.MemoryLimit, env.Image, env.Network, asked.ExposedPorts,
	}, id}, true
}

// listEnvironments sorts by number: the service sorts ids as texts, where "10" comes before "9".
func (f *Face) listEnvironments(w http.ResponseWriter, r *http.Request) error {
	if err := f.fetch(r, ""); err != nil {
		return err
	}
	envs, err := f.Environments.Environments(r.Context(), drover.DefaultNamespace)
	if err != nil {
		return err
	}
	var list struct {
		ExecutionEnvironments []executionEnvironment `json:"executionEnvironments"` // null when empty
	}
	for _, env := range envs {
		if e, ok := fromEnvironment(env); ok {
			list.ExecutionEnvironments = append(list.ExecutionEnvironments, e)
		}
	}
	slices.SortFunc(list.ExecutionEnvironments, func(a, b executionEnvironment) int { return cmp.Compare(a.ID, b.ID) })
	return writeJSON(w, list)
}

// getEnvironment answers with one environment; 404 with an empty body if there is none.
func (f *Face) getEnvironment(w http.ResponseWriter, r *http.Request) error {
	id, err := environmentID(r)
	if err != nil {
		return err
	}
	if err := f.fetch(r, strconv.Itoa(id)); err != nil {
		return err
	}
	env, err := f.Environments.Environment(r.Context(), strconv.Itoa(id))
	if err != nil {
		return noEnvironment(err)
	}
	out, _ := fromEnvironment(env) // its id is a number
	return writeJSON(w, out)
}

// deleteEnvironment removes the template job too; otherwise the next read with fetch=true would bring the
// environment back.
func (f *Face) deleteEnvironment(w http.ResponseWriter, r *http.Request) error {
	id, err := environmentID(r)
	if err != nil {
		return err
	}
	if err := f.Environments.DeleteEnvironment(r.Context(), strconv.Itoa(id)); err != nil {
		return noEnvironment(err)
	}
	if err := f.Templates.RemoveTemplate(r.Context(), strconv.Itoa(id)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// noEnvironment turns NotFound into the contract's 404, which has no body; other errors stay as they are.
func noEnvironment(err error) error {
	if drover.CodeOf(err) == drover.NotFound {
		return &reply{status: http.StatusNotFound}
	}
	return err
}

// environmentID reads the path: anything but digits is an unknown route.
func environmentID(r *http.Request) (int, error) {
	text := r.PathValue("environment")
	if text == "" || slices.ContainsFunc([]byte(text), func(c byte) bool { return c < '0' || c > '9' }) {
		return 0, &reply{status: http.StatusNotFound}
	}
	id, err := strconv.Atoi(text)
	if err != nil {
		return 0, &reply{status: http.StatusBadRequest, message: fmt.Sprintf("could not update environment: %v", err)}
	}
	return id, nil
}

// fetch reads the fetch parameter. We always answer from the state; what fetching adds are the environments of template
// jobs that somebody registered beside us, all or the one with the id.
func (f *Face) fetch(r *http.Request, only string) error {
	text := r.URL.Query().Get("fetch")
	if text == "" {
		return nil
	}
	asked, err := strconv.ParseBool(text)
	if err != nil {
		return &reply{status: http.StatusBadRequest, message: fmt.Sprintf("could not parse fetch parameter: %v", err)}
	}
	if !asked {
		return nil
	}
	for _, env := range f.Templates.Templates(r.Context()) {
		if only != "" && env.ID != only {
			continue
		}
		if _, err := f.Environments.Environment(r.Context(), env.ID); err == nil {
			continue // ours is newer
		}
		env.Driver = f.Driver
		if _, err := f.Environments.PutEnvironment(r.Context(), env); err != nil {
			return fmt.Errorf("taking over environment %s from its template job: %w", env.ID, err)
		}
	}
	return nil
}
