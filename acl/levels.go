package acl

import "slices"

// Levels is what a caller may do with the parts of the cluster, in the words of policies: "list" (plugins only), "read", "write" or "" for
// nothing. Each has those before it.
type Levels struct {
	AccessorID string `json:"accessorId"` // of the token
	Name       string `json:"name"`       // of the token, for people
	Management bool   `json:"management"` // everything may be done
	Agent      string `json:"agent"`
	Node       string `json:"node"`
	Operator   string `json:"operator"`
	Quota      string `json:"quota"`
	Plugin     string `json:"plugin"`
	Fleet      string `json:"fleet"`
	// Whether objects of a kind may be read in some namespace; of variables, listed.
	Jobs      bool `json:"jobs"`
	Services  bool `json:"services"`
	Runners   bool `json:"runners"`
	Volumes   bool `json:"volumes"`
	Variables bool `json:"variables"`

	// Namespace is the one that was asked about, "" if none was; "*" is some namespace, whichever.
	Namespace string `json:"namespace,omitempty"`
	// Capabilities is what the caller may do there, and Somewhere in some namespace, whichever. Both are told with a namespace, and are
	// empty of who may do everything.
	Capabilities []string `json:"capabilities,omitempty"`
	Somewhere    []string `json:"somewhere,omitempty"`
}

// May reports whether the capability is given in the namespace that was asked about.
func (l *Levels) May(capability string) bool {
	return l.Management || slices.Contains(l.Capabilities, capability)
}

// MaySomewhere reports whether the capability is given in some namespace.
func (l *Levels) MaySomewhere(capability string) bool {
	return l.Management || slices.Contains(l.Somewhere, capability)
}
