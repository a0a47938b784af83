package poseidon

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/network"
)

// RunnerRequest has Poseidon's name: it stands in the texts of decoding errors.
type RunnerRequest struct {
	ExecutionEnvironmentID int `json:"executionEnvironmentId"`
	InactivityTimeout      int `json:"inactivityTimeout"` // seconds; 0 = never, negative = at once
}

// mappedPort tells where one of the environment's exposed ports can be reached, as "host:port".
type mappedPort struct {
	ExposedPort uint   `json:"exposedPort"`
	HostAddress string `json:"hostAddress"`
}

// runnerResponse is the answer to a claim.
type runnerResponse struct {
	RunnerID    string       `json:"runnerId"`
	MappedPorts []mappedPort `json:"mappedPorts"` // null without network
}

// provide claims a warm runner. With ClaimWait 0 an empty pool is answered at once: a wait of 0 would take the
// service's default, hence -1.
func (f *Face) provide(w http.ResponseWriter, r *http.Request) error {
	var req RunnerRequest
	if err := decode(r, &req); err != nil {
		return err
	}
	claimed, err := f.Runners.Claim(r.Context(), execution.ClaimRequest{
		Environment: strconv.Itoa(req.ExecutionEnvironmentID), IdleTimeout: idleTimeout(req.InactivityTimeout), Wait: cmp.Or(f.ClaimWait, -1),
	})
	switch drover.CodeOf(err) {
	case drover.NotFound:
		return &reply{status: http.StatusNotFound, message: textNoEnvironment}
	case drover.Gone: // it ended in the very moment: as if it had not been warm
		return &reply{http.StatusInternalServerError, textOverload, codeOverload}
	}
	if err != nil {
		return err
	}
	httpapi.About(r.Context(), strconv.Itoa(req.ExecutionEnvironmentID)+" "+claimed.ID)
	return writeJSON(w, runnerResponse{claimed.ID, mapPorts(claimed.Ports)})
}

// maxSeconds keeps times within what the service takes; it is ten years.
const maxSeconds = 10 * 365 * 24 * 3600

// idleTimeout translates the contract's seconds into the service's, where 0 is the default and a negative value
// means none. The shortest positive time stands for "at once".
func idleTimeout(seconds int) time.Duration {
	switch {
	case seconds == 0:
		return -1 // none
	case seconds < 0:
		return time.Nanosecond
	}
	return time.Duration(min(seconds, maxSeconds)) * time.Second
}

// mapPorts lists the ports in their order; nil, which is null in JSON, without any. A mapping without a target port
// has it in its label.
func mapPorts(ports []network.PortMapping) (mapped []mappedPort) {
	for _, p := range ports {
		exposed := p.To
		if exposed <= 0 {
			exposed, _ = strconv.Atoi(p.Label) // labels are the exposed ports
		}
		mapped = append(mapped, mappedPort{uint(exposed), net.JoinHostPort(p.HostIP, strconv.Itoa(p.Value))})
	}
	return mapped
}

// destroy releases a runner (204). One that is already gone is 410, as on all paths below a runner.
func (f *Face) destroy(w http.ResponseWriter, r *http.Request) error {
	if err := f.Runners.Release(r.Context(), r.PathValue("runner")); err != nil {
		return runnerError(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// executionRequest is matched without regard to case, as Poseidon's is: it has no tags there.
type executionRequest struct {
	Command             string
	PrivilegedExecution bool
	TimeLimit           int // seconds; 0 = none, negative = at once
	Environment         map[string]string
}

// execute prepares a command, and answers with the address of the websocket that will start it. The runner is
// checked before the body, because a client with a dead runner must see 410, not 400.
func (f *Face) execute(w http.ResponseWriter, r *http.Request) error {
	var req executionRequest
	runner := r.PathValue("runner")
	if _, err := f.Runners.Runner(r.Context(), runner); err != nil {
		return runnerError(err)
	}
	if err := decode(r, &req); err != nil {
		return err
	}
	argv, err := f.Executions.Shell(r.Context(), runner, req.Command)
	if err != nil {
		return runnerError(err)
	}
	id, err := f.Executions.Prepare(r.Context(), runner, f.spec(argv, req))
	if err != nil {
		return runnerError(err)
	}
	return writeJSON(w, struct {
		WebsocketURL string `json:"websocketUrl"`
	}{f.websocketURL(r, runner, id)})
}

// spec describes the execution as Poseidon runs it: in a terminal, with stdin, and with stderr apart unless
// MergeStderr. The request may set TERM, but not CODEOCEAN. A negative time limit ends the command at once.
func (f *Face) spec(argv []string, req executionRequest) execution.Spec {
	vars := map[string]string{"TERM": "xterm"}
	maps.Copy(vars, req.Environment)
	vars["CODEOCEAN"] = "true"
	spec := execution.Spec{
		Argv: argv, Env: vars, Privileged: req.PrivilegedExecution, TTY: true, TTYStderr: !f.MergeStderr, Stdin: true,
	}
	switch {
	case req.TimeLimit < 0:
		spec.Limits.Wall = time.Nanosecond
	case req.TimeLimit > 0:
		spec.Limits.Wall = time.Duration(min(req.TimeLimit, maxSeconds)) * time.Second
	}
	return spec
}

// websocketURL is where the client itself found us: Host, and the scheme that a proxy in front of us was asked with.
func (f *Face) websocketURL(r *http.Request, runner, id string) string {
	scheme, host := "ws", r.Host
	if r.TLS != nil {
		scheme = "wss"
	}
	forwarded, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	switch strings.ToLower(strings.TrimSpace(forwarded)) {
	case "https", "wss":
		scheme = "wss"
	case "http", "ws":
		scheme = "ws"
	}
	if public, err := url.Parse(f.PublicURL); f.PublicURL != "" && err == nil {
		host = cmp.Or(public.Host, host)
		scheme = map[string]string{"https": "wss", "http": "ws"}[public.Scheme]
	}
	u := url.URL{
		Scheme: scheme, Host: host, Path: fmt.Sprintf("/api/v1/runners/%s/websocket", runner), RawQuery: "executionID=" + id,
	}
	return u.String()
}

// exitCode is the contract's uint8.
func exitCode(code int) uint8 { return uint8(code & math.MaxUint8) }
