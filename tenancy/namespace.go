package tenancy

// Namespace is a tenant: jobs, environments and what becomes of them belong to one.
type Namespace struct {
	Name                  string
	Description           string
	Quota                 string
	Capabilities          *NamespaceCapabilities   // nil: no restriction
	NodePoolConfiguration *NamespaceNodePoolConfig // nil: no restriction
	Images                *NamespaceImages         `json:",omitempty"` // nil: no restriction
	// RequiredExtraClaims are in every identity of the namespace's tasks, by their names; OptionalExtraClaims in those that name them. The
	// values may have references such as ${job.id}.
	RequiredExtraClaims, OptionalExtraClaims map[string]string
	Meta                                     map[string]string
	CreateIndex                              uint64
	ModifyIndex                              uint64
}

// NamespaceCapabilities says what tasks and groups of a namespace's jobs may use. An empty list of what is enabled enables all;
// what is disabled is so whether enabled or not.
type NamespaceCapabilities struct {
	EnabledTaskDrivers, DisabledTaskDrivers   []string
	EnabledNetworkModes, DisabledNetworkModes []string
}

// NamespaceNodePoolConfig says which node pools a namespace's jobs may use: Default always, and what is Allowed or not Denied, in
// which * stands for any text. A nil Allowed allows all; an empty one none but Default.
type NamespaceNodePoolConfig struct {
	Default         string // pool of jobs that name none; "" is DefaultNodePool
	Allowed, Denied []string
}

// What NamespaceImages does about images that name no digest.
const (
	PinRequire = "require" // they are refused
	PinResolve = "resolve" // they are given the digest that their registry has when their job is registered
)

// NamespaceImages says which images a namespace's tasks may run. It is ours; Nomad has nothing like it.
type NamespaceImages struct {
	// Registries are registries, or paths in one, that images may come from: ghcr.io/acme allows ghcr.io/acme/web. "host" allows the
	// machine's own files in a sandbox. Empty: all.
	Registries []string
	Pin        string // "", PinRequire or PinResolve
	// SignedBy are public keys in PEM, ECDSA P-256. An image must have cosign's signature by one of them. Empty: it need not be signed.
	SignedBy []string `json:",omitempty"`
}
