package acl

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
}
