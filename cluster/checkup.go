package cluster

import "time"

// Checkup is what a server says of itself, so that Diagnose can judge the whole.
type Checkup struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Region  string `json:"region"`
	Version string `json:"version"` // of the program
	Cluster string `json:"cluster"` // id of the cluster that it belongs to; "" if it is alone

	Now time.Time `json:"now"` // by its clock

	Leader      string        `json:"leader"`       // id of who leads, as this server sees it; "" = nobody
	LastContact time.Duration `json:"lastContact"`  // since it heard of the leader; 0 if it leads, negative if it never did
	LastIndex   uint64        `json:"lastIndex"`    // of its log
	Applied     uint64        `json:"appliedIndex"` // of its state
	Sick        string        `json:"sick"`         // why it refuses writes; "" = it does not

	// Refused says why servers of the log get no entries from this one although something answers at their address, by their ids.
	// Another server stands there, or one that does not take this server for one.
	Refused map[string]string `json:"refused,omitempty"`

	// Locked says why root keys of the keyring cannot be unwrapped on it, by their ids: variables, identities and signed receipts of these
	// are not to be had there.
	Locked map[string]string `json:"locked,omitempty"`

	Writes       Writes            `json:"writes"`
	Certificates []Certificate     `json:"certificates"`
	Pools        []string          `json:"pools"`    // how the pools of its configuration differ from the fleet's
	Settings     map[string]string `json:"settings"` // digests of what all servers should be set to alike, by key
}

// Writes are the newest writes of the log to its disk, which are safe when they return.
type Writes struct {
	Count int           `json:"count"`
	Mean  time.Duration `json:"mean"`
	Worst time.Duration `json:"worst"`
}

// Certificate is one that the server shows or trusts.
type Certificate struct {
	File string    `json:"file"`
	Ends time.Time `json:"ends"`
}
