package poseidon

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// statistics counts the runners of one environment. Runners that still start are neither idle nor used.
type statistics struct {
	ID                 int  `json:"id"`
	PrewarmingPoolSize uint `json:"prewarmingPoolSize"`
	IdleRunners        uint `json:"idleRunners"`
	UsedRunners        uint `json:"usedRunners"`
}

// allStatistics returns the counts by environment; those whose id is not a number, and those of other
// namespaces than the default, are left out.
func (f *Face) allStatistics(r *http.Request) (map[int]statistics, error) {
	pools, err := f.Environments.Pools(r.Context())
	if err != nil {
		return nil, err
	}
	all := map[int]statistics{}
	for _, p := range pools {
		if id, err := strconv.Atoi(p.Environment); err == nil && p.Namespace == "" {
			all[id] = statistics{id, uint(p.Size), uint(p.Warm), uint(p.Claimed)}
		}
	}
	return all, nil
}

// statistics answers with an object whose keys are the environments' ids, as texts because JSON has no other keys.
func (f *Face) statistics(w http.ResponseWriter, r *http.Request) error {
	all, err := f.allStatistics(r)
	if err != nil {
		return err
	}
	return writeJSON(w, all)
}

// health alerts when a pool is nearly empty, so that CodeOcean can show it.
func (f *Face) health(w http.ResponseWriter, r *http.Request) error {
	all, err := f.allStatistics(r)
	if err != nil {
		return err
	}
	var depleting []int
	for id, s := range all {
		if s.PrewarmingPoolSize > 0 && float64(s.IdleRunners)/float64(s.PrewarmingPoolSize) < f.PrewarmingThreshold {
			depleting = append(depleting, id)
		}
	}
	if len(depleting) > 0 {
		slices.Sort(depleting)
		ids := strings.ReplaceAll(strings.Trim(fmt.Sprint(depleting), "[]"), " ", ",")
		return &reply{http.StatusServiceUnavailable, "the prewarming pool is depleting: environments " + ids, codeDepleting}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// version answers with the release as a JSON text.
func (f *Face) version(w http.ResponseWriter, _ *http.Request) error {
	if f.Version == "" {
		return &reply{status: http.StatusNotFound}
	}
	return writeJSON(w, f.Version)
}
