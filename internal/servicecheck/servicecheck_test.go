package servicecheck

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/network"
	"github.com/drover-project/drover/service"
)

// with is a canonical job whose group has a service with the check.
func with(check map[string]any) (*drover.Job, *service.Service) {
	j := &drover.Job{ID: "j", TaskGroups: []*drover.TaskGroup{{
		Name: "g", Networks: []*network.Resource{{DynamicPorts: []network.Port{{Label: "http"}}}},
		Services: []*service.Service{{Name: "web", PortLabel: "http", Checks: []map[string]any{check}}},
		Tasks:    []*drover.Task{{Name: "t", Driver: "fake"}},
	}}}
	j.Canonicalize()
	return j, j.TaskGroups[0].Services[0]
}

// Checks are read as the API has them, and as older programs stored those of job files.
func TestBothForms(t *testing.T) {
	t.Parallel()
	want := &Check{
		Name: "up", Type: "http", Path: "/", PortLabel: "http", TaskName: "t", Interval: 10 * time.Second, Timeout: 1500 * time.Millisecond,
		Header: map[string][]string{"A": {"b", "c"}}, TLSSkipVerify: true, SuccessBeforePassing: 2, OnUpdate: "ignore",
		CheckRestart: &service.CheckRestart{Limit: 3, Grace: new(time.Minute), IgnoreWarnings: true},
	}
	for name, m := range map[string]map[string]any{
		"file": {
			"name": "up", "type": "http", "path": "/", "port": "http", "task": "t", "interval": "10s", "timeout": "1500ms",
			"header": []any{map[string]any{"A": []any{"b", "c"}}}, "tls_skip_verify": true, "success_before_passing": int64(2),
			"on_update":     "ignore",
			"check_restart": []any{map[string]any{"limit": 3, "grace": "1m", "ignore_warnings": true}},
		},
		"API": {
			"Name": "up", "Type": "http", "Path": "/", "PortLabel": "http", "TaskName": "t", "Interval": 1e10, "Timeout": 1.5e9,
			"Header": map[string]any{"A": []any{"b", "c"}}, "TLSSkipVerify": true, "SuccessBeforePassing": 2.0, "OnUpdate": "ignore",
			"CheckRestart": map[string]any{"Limit": 3.0, "Grace": 6e10, "IgnoreWarnings": true}, "Unknown": "x",
		},
		"stored": want.Map(),
	} {
		j, s := with(m)
		require.Empty(t, cmp.Diff([]*Check{want}, Of(s)), name)
		Canonicalize(j)
		require.Empty(t, cmp.Diff(want.Map(), s.Checks[0]), name)
		require.NoError(t, Faults(j), name)
	}
}

func TestDefaultsOfTheService(t *testing.T) {
	t.Parallel()
	j, s := with(map[string]any{"Type": "tcp", "CheckRestart": map[string]any{"Limit": 5}})
	s.OnUpdate, s.CheckRestart = "ignore_warnings", &service.CheckRestart{Limit: 2, IgnoreWarnings: true}
	s.Checks = append(s.Checks, map[string]any{"Type": "tcp"})
	Canonicalize(j)
	list := Of(s)
	require.Equal(t, &service.CheckRestart{Limit: 5, Grace: new(time.Second), IgnoreWarnings: true}, list[0].CheckRestart)
	require.Equal(t, &service.CheckRestart{Limit: 2, Grace: new(time.Second), IgnoreWarnings: true}, list[1].CheckRestart)
	require.Equal(t, "ignore_warnings", list[0].OnUpdate)
	require.Nil(t, s.CheckRestart)
	before := s.Checks[0]
	Canonicalize(j)
	require.Empty(t, cmp.Diff(before, s.Checks[0]), "again")
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]map[string]any{
		"Type: must be http, tcp, grpc or script":            {"Type": "ping"},
		"Path: must be set for http":                         {"type": "http"},
		`PortLabel: the group has no port "y"`:               {"type": "tcp", "port": "y"},
		"Protocol: must be http or https":                    {"Type": "http", "Path": "/", "Protocol": "spdy"},
		"AddressMode: must be auto, host, alloc":             {"Type": "tcp", "AddressMode": "lan"},
		"Interval: must be at least 1s, got 10ms":            {"Type": "tcp", "interval": "10ms"},
		"Timeout: must be at least 1s, got -1s":              {"Type": "tcp", "timeout": "-1s"},
		`TaskName: the group has no task "x"`:                {"Type": "tcp", "TaskName": "x"},
		"CheckRestart.Limit: must not be negative":           {"Type": "tcp", "CheckRestart": map[string]any{"Limit": -1}},
		"CheckRestart.Grace: must not be negative":           {"Type": "tcp", "check_restart": map[string]any{"grace": "-1s"}},
		"OnUpdate: must be require_healthy":                  {"Type": "tcp", "OnUpdate": "panic"},
		"cannot unmarshal string into Go struct field Check": {"Type": "tcp", "interval": "soon"},
		"Command: must be set for script":                    {"Type": "script", "TaskName": "t"},
		"TaskName: must name the task that the script":       {"Type": "script", "Command": "x"},
		"Type: must be script with Command or Args":          {"Type": "tcp", "Args": []any{"x"}},
		"Type: must be grpc with GRPCService or GRPCUseTLS":  {"Type": "tcp", "grpc_use_tls": true},
		"Checks[0]: json: cannot unmarshal number into Go":   {"Type": 7},
	} {
		j, _ := with(m)
		require.ErrorContains(t, Faults(j), "job.group[g].service[web].Checks[0]", want)
		require.ErrorContains(t, Faults(j), want)
	}
}
