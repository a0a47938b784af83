package agent

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
)

type schedulersConfig struct {
	ServerID          string   `json:"server_id"`
	NumSchedulers     int      `json:"num_schedulers"`
	EnabledSchedulers []string `json:"enabled_schedulers"`
}

// schedulers lists the workers, which are all alike.
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
	count, types, since := f.Servers.Schedulers()
	list := []worker{}
	for i := range count {
		list = append(list, worker{strconv.Itoa(i), append(types, drover.JobTypeCore), since, "Started", "Running"})
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
	count, types, _ := f.Servers.Schedulers()
	return f.Reply(w, r, schedulersConfig{f.Process.Self().Member.Name, count, append(types, drover.JobTypeCore)})
}

// setSchedulers changes the workers until the server stops. Garbage is collected whatever their number is, so that Nomad's type
// _core has to be among the types, as there.
func (f *face) setSchedulers(w http.ResponseWriter, r *http.Request) error {
	if err := f.onlyHere(r); err != nil {
		return err
	}
	var b schedulersConfig
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	core := slices.Index(b.EnabledSchedulers, drover.JobTypeCore)
	if core < 0 {
		return drover.Errorf(drover.Invalid, "Invalid request")
	}
	if f.Servers.SetSchedulers(b.NumSchedulers, slices.Delete(b.EnabledSchedulers, core, core+1)) != nil {
		return drover.Errorf(drover.Invalid, "Invalid request") // as Nomad
	}
	return f.schedulersConfig(w, r)
}
