package cluster

import (
	"encoding/json"
	"time"
)

// Autopilot is how the leader keeps the servers healthy. Its fields and its JSON are Nomad's: durations are texts such as "200ms".
type Autopilot struct {
	CleanupDeadServers      bool          // remove servers that failed, while the others are a quorum
	LastContactThreshold    time.Duration // a server that the leader did not reach for longer is unhealthy
	MaxTrailingLogs         uint64        // a server that is more entries behind is unhealthy
	MinQuorum               uint          // never remove servers below so many voters
	ServerStabilizationTime time.Duration // how long a new server is healthy before it may vote
	EnableRedundancyZones   bool          // one voter in each zone; the others of a zone stand by
	DisableUpgradeMigration bool          // without an effect: servers are never migrated by version
	EnableCustomUpgrades    bool          // without an effect

	CreateIndex uint64 // 0 while nobody stored it
	ModifyIndex uint64
}

// DefaultAutopilot is what holds until somebody configures autopilot. The values are Nomad's.
func DefaultAutopilot() Autopilot {
	return Autopilot{
		CleanupDeadServers: true, LastContactThreshold: 200 * time.Millisecond, MaxTrailingLogs: 250, ServerStabilizationTime: 10 * time.Second,
	}
}

// written is the JSON of Autopilot: its own durations hide those of the embedded one.
type written struct {
	LastContactThreshold    text
	ServerStabilizationTime text
	*plain
}

// plain is Autopilot without its methods.
type plain Autopilot

// MarshalJSON implements json.Marshaler.
func (a Autopilot) MarshalJSON() ([]byte, error) {
	return json.Marshal(written{text(a.LastContactThreshold), text(a.ServerStabilizationTime), (*plain)(&a)})
}

// UnmarshalJSON implements json.Unmarshaler. What is not in the text stays as it is.
func (a *Autopilot) UnmarshalJSON(data []byte) error {
	out := written{text(a.LastContactThreshold), text(a.ServerStabilizationTime), (*plain)(a)}
	if err := json.Unmarshal(data, &out); err != nil {
		return err
	}
	a.LastContactThreshold, a.ServerStabilizationTime = time.Duration(out.LastContactThreshold), time.Duration(out.ServerStabilizationTime)
	return nil
}

// text is a duration that is written as a text, and read as one or as nanoseconds.
type text time.Duration

// MarshalText implements encoding.TextMarshaler.
func (t text) MarshalText() ([]byte, error) { return []byte(time.Duration(t).String()), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return json.Unmarshal(data, (*int64)(t))
	}
	if s == "" {
		return nil
	}
	d, err := time.ParseDuration(s)
	*t = text(d)
	return err
}
