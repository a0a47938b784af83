package drover

// Namespace is a tenant: jobs, environments and what becomes of them belong to one.
type Namespace struct {
	Name                  string
	Description           string
	Quota                 string
	Capabilities          *NamespaceCapabilities   // nil: no restriction
	NodePoolConfiguration *NamespaceNodePoolConfig // nil: no restriction
	Meta                  map[string]string
	CreateIndex           uint64
	ModifyIndex           uint64
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
