package agent

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
)

// jobTypes are the kinds of evaluations that each scheduler worker takes.
func jobTypes() []string {
	return []string{drover.JobTypeService, drover.JobTypeBatch, drover.JobTypeSystem, drover.JobTypeSysBatch, drover.JobTypeCore}
}

type schedulersConfig struct {
	ServerID          string   `json:"server_id"`
	NumSchedulers     int      `json:"num_schedulers"`
	EnabledSchedulers []string `json:"enabled_schedulers"`
}

// schedulers lists the workers: all alike, started with the server, each takes every kind.
func (f *face) schedulers(w http.ResponseWriter, r *http.Request) error {
	if err := f.onlyHere(r); err != nil {
		return err
	}
	type worker struct {
		ID                string    `json:"id"`
		EnabledSchedulers []string  `json:"enabled_schedulers"`
		Started           time.Time `json:"started"`
		Status            string    `json:"status"`
		WorkloadStatus    string    `json:"workload_status"`
	}
	count, started := f.Servers.Schedulers()
	list := []worker{}
	for i := range count {
		list = append(list, worker{strconv.Itoa(i), jobTypes(), started, "Started", "Running"})
	}
	return f.Reply(w, r, struct {
		ServerID   string   `json:"server_id"`
		Schedulers []worker `json:"schedulers"`
	}{f.Process.Self().Member.Name, list})
}

// schedulersConfig answers GET /v1/agent/schedulers/config.
func (f *face) schedulersConfig(w http.ResponseWriter, r *http.Request) error {
	if err := f.onlyHere(r); err != nil {
		return err
	}
	count, _ := f.Servers.Schedulers()
	return f.Reply(w, r, schedulersConfig{f.Process.Self().Member.Name, count, jobTypes()})
}

// setSchedulers takes what holds already; the number is fixed when a server starts.
func (f *face) setSchedulers(w http.ResponseWriter, r *http.Request) error {
	var b schedulersConfig
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	known := func(kind string) bool { return slices.Contains(jobTypes(), kind) }
	if b.NumSchedulers < 0 || !slices.Contains(b.EnabledSchedulers, drover.JobTypeCore) ||
		slices.ContainsFunc(b.EnabledSchedulers, func(kind string) bool { return !known(kind) }) {
		return drover.Errorf(drover.Invalid, "Invalid request")
	}
	count, _ := f.Servers.Schedulers()
	slices.Sort(b.EnabledSchedulers)
	want := jobTypes()
	slices.Sort(want)
	if b.NumSchedulers != count || !slices.Equal(slices.Compact(b.EnabledSchedulers), want) {
		return drover.Errorf(drover.NotImplemented,
			"the scheduler workers of a running server can't be changed: set server.num_schedulers and restart it")
	}
	return f.schedulersConfig(w, r)
}
