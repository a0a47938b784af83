package admin

import (
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// Text is the texts of these pages, in one place for translators.
var Text = struct {
	Servers, Consensus, Gossip, Autopilot, Healthy, Unhealthy, UnhealthyMore, Judgement, Tolerance, Leader, Voters, Voter, NoVoter,
	NoServers, CleanUp, Silent, Behind, Stable, Quorum, Doctor, AskDoctor, Again,
	NodesFound, NodesMore, NodesLooked, NodesSilent, NodesWell string

	Find, BeginsWith, Sure, Cancel, BadForm, FirstOf, Yes, No, Never string

	Status, Job, Namespace, Type, Priority, Made, Changed, Node, Description, ID, Cause, Waits, Before, After, Blocked, Version, Name, Pool,
	Index string

	Evaluations, Evaluation, NoEvaluations, GroupsUnplaced, Placed, NothingPlaced, Queued, Related string
	Deployments, Deployment, NoDeployments, Groups, NoGroups, Act, Promote, Deadline               string

	Services, Service, NoServices, NoInstances                            string
	Volumes, NoVolumes, Capacity, Plugin, Path, Mounts, NoMounts          string
	Namespaces, NoNamespaces, Quota, NoQuota, NoLimits, Within            string
	DriversOn, DriversOff, NetworksOn, NetworksOff                        string
	PoolDefault, PoolsOn, PoolsOff, Registries, Pin                       string
	CPU, Cores, Memory, MemoryMax, Allocations, Runners, Executions       string
	ExecutionCPU, ExecutionOutput, VariablesSize, FleetDay                string
	Variables, NewVariable, NoVariables, NoItems, Hidden, ShowValues      string
	HideValues, Change, Delete, Save, Locked, LockedMore, VariablePath    string
	Item, ItemName, ItemValue, ItemsMore, AddItem, NoItemName             string
	ItemTwice, NoPath, DeleteVariable, Conflict, ConflictMore, NoConflict string
	ConflictUnread, DeleteConflict, Absent                                string

	Access, Tokens, Policies, Roles, Methods, Rules, Role, NoTokens, NoPolicies, NoRoles, NoMethods, NoRules, NewToken, TokenPolicies,
	TokenRoles, TTL, BadTTL, Global, Create, TokenMade, Secret, SecretOnce, SecretOnceMore, Accessor, Rights, Ends, DeleteToken, Workload,
	PolicyText, Anyone string

	TokenTypes, Done, Explained, Verdicts map[string]string

	ConsensusColumns, GossipColumns, DoctorColumns, NodesFoundColumns, EvaluationColumns, DeploymentColumns, QueuedColumns,
	PlacedColumns, RelatedColumns, ServiceColumns, InstanceColumns, VolumeColumns, NamespaceColumns, QuotaColumns, VariableColumns,
	ItemColumns, ConflictColumns, TokenColumns, PolicyColumns, RoleColumns, MethodColumns, RuleColumns []string
}{
	Servers: "Servers", Consensus: "Consensus (Raft)", Gossip: "Members (gossip)", Autopilot: "Autopilot",
	Healthy: "healthy", Unhealthy: "unhealthy", Judgement: "Health", Tolerance: "May fail at once without an outage", Leader: "leader",
	Voters: "Voters", Voter: "voter", NoVoter: "no voter", NoServers: "No server is known here.",
	UnhealthyMore: "A server is unhealthy, or there are too few. The table says which; the doctor says why.",
	CleanUp:       "Removes servers that failed", Silent: "Unhealthy if silent for", Behind: "Unhealthy if behind by (entries)",
	Stable: "Votes after being healthy for", Quorum: "Never below so many voters", Doctor: "Doctor", Again: "Examine again",
	AskDoctor:  "Have the doctor examine them",
	NodesFound: "What nodes found of themselves", NodesMore: " and %d more", NodesLooked: "Nodes that were looked at: %d.",
	NodesSilent: "Of them %d do not say what they found: their agents are older.", NodesWell: "Nothing is wrong with a node.",

	Find: "Find", BeginsWith: "Begins with", Sure: "Are you sure?", Cancel: "Cancel", BadForm: parts.BadForm,
	FirstOf: "The first %d of %d.", Yes: "yes", No: "no", Never: "never",

	Status: "Status", Job: "Job", Namespace: "Namespace", Type: "Type", Priority: "Priority", Made: "Made", Changed: "Changed",
	Node: "Node", Description: "Description", ID: "Id", Cause: "Cause", Waits: "Waits until", Before: "Came of", After: "Next",
	Blocked: "What waits for room", Version: "Version of the job", Name: "Name", Pool: "Node pool", Index: "Index",

	Evaluations: "Evaluations", Evaluation: "Evaluation", GroupsUnplaced: "groups not placed: %d",
	NoEvaluations: "No evaluation is here: none such, none yet, or none that your token may see.",
	Placed:        "What it placed", NothingPlaced: "It placed nothing.", Queued: "Waits", Related: "Evaluations that belong together",
	Deployments: "Deployments", Deployment: "Deployment", NoDeployments: "No deployment is here: none yet, or none that your token may see.",
	Groups: "Groups", NoGroups: "It has no group.", Act: "Pause or fail it on the job's page",
	Promote:  "Promote its canaries on the job's page",
	Deadline: "fails without progress until",

	Services: "Services", Service: "Service", NoServices: "No service is here. A `service` block in a job's group or task makes one.",
	NoInstances: "Nothing serves it now.",
	Volumes:     "Volumes", NoVolumes: "No volume is here. `drover volume create FILE` makes one.", Capacity: "Capacity", Plugin: "Plugin",
	Path: "Path on the node", Mounts: "Mounted by", NoMounts: "Nothing mounts it.",
	Namespaces: "Namespaces", NoNamespaces: "No namespace is here that your token may see.", Quota: "Quota",
	NoQuota: "It has no quota: what its work may use is not bounded.", NoLimits: "The quota bounds nothing.",
	Within:    "What is in it",
	DriversOn: "Drivers allowed", DriversOff: "Drivers forbidden", NetworksOn: "Network modes allowed", NetworksOff: "Network modes forbidden",
	PoolDefault: "Default node pool", PoolsOn: "Node pools allowed", PoolsOff: "Node pools forbidden", Registries: "Images from",
	Pin: "Digests of images",
	CPU: "CPU (MHz)", Cores: "Cores", Memory: "Memory (MiB)", MemoryMax: "Memory at most (MiB)", Allocations: "Allocations",
	Runners:    "Runners",
	Executions: "Executions", ExecutionCPU: "CPU of executions a day (s)", ExecutionOutput: "Output of executions a day (MB)",
	VariablesSize: "Variables (MiB)", FleetDay: "Cost of machines a day",
	Variables: "Variables", NewVariable: "New variable", NoItems: "It has no items.",
	NoVariables: "No variable is here: none yet, none that begins so, or none that your token may list.",
	Hidden:      "hidden", ShowValues: "Show values", HideValues: "Hide values", Change: "Change", Delete: "Delete", Save: "Save",
	Locked: "locked", LockedMore: "Somebody holds its lock: it changes when that is released.", VariablePath: "Path",
	Item: "Item %d", ItemName: "Name", ItemValue: "Value", ItemsMore: "An item without name and value is left out.", AddItem: "Add an item",
	NoItemName: "item %d: it has a value, but no name", ItemTwice: "item %q: it is there twice", NoPath: "path: it is empty",
	DeleteVariable: "Delete the variable %s? Its values are lost.",
	Conflict:       "Somebody else changed it meanwhile",
	ConflictMore: "The table shows where what is there now differs from what you typed. Nothing you typed is lost. " +
		"Save again to write it over what is there.",
	NoConflict:     "What is there now is what you typed.",
	ConflictUnread: "What is there now may not be shown to your token. Nothing you typed is lost.",
	DeleteConflict: "It was not deleted. Look at what it is now.", Absent: "not there",

	Access: "Access control", Tokens: "Tokens", Policies: "Policies", Roles: "Roles", Methods: "Auth methods", Rules: "Binding rules",
	Role: "role", NoTokens: "No token is here that yours may see.", NoPolicies: "No policy is here that your token may see.",
	NoRoles: "No role is here that your token may see.", NoMethods: "There is no auth method: people sign in with tokens.",
	NoRules:  "There is no binding rule: a login gives nothing.",
	NewToken: "New token", TokenPolicies: "Policies, by commas", TokenRoles: "Roles, by commas",
	TTL:    "Lifetime, such as 8h; empty is for ever",
	BadTTL: "lifetime: %q is not a time such as 8h or 30m", Global: "Known in all regions", Create: "Create", TokenMade: "The token is made",
	Secret: "Secret", SecretOnce: "This is the only time that the secret is shown",
	SecretOnceMore: "Keep it where it is safe now: nobody can look it up later. Who has it has the token's rights.",
	Accessor:       "Accessor", Rights: "Policies and roles", Ends: "Ends",
	DeleteToken: "Delete the token %s? Whoever uses it is refused from now on.", Workload: "Bound to", PolicyText: "Rules",
	Anyone: "everybody",

	TokenTypes: map[string]string{
		acl.ClientToken: "client: may do what its policies say", acl.ManagementToken: "management: may do everything",
	},
	Done: map[string]string{
		"variable": "The variable is saved.", "variable-deleted": "The variable is deleted.", "token-deleted": "The token is deleted.",
	},
	Explained: map[string]string{
		"pending":  "It waits for a scheduler.",
		"blocked":  "It waits for room: when a node or what it lacks is there, the job is looked at again.",
		"quota":    "It waits for the quota %s: when less of that is used, the job is looked at again.",
		"complete": "The scheduler is done with it: everything that the job wanted then has its place.",
		"partly":   "The scheduler is done with it, and did not find a place for everything. What is left waits in another evaluation.",
		"failed":   "It failed: the scheduler could not carry out what it planned.",
		"canceled": "It was cancelled: another evaluation of the job does its work.",
	},
	Verdicts: map[string]string{
		"ok": "The servers are well.", "weak": "All works, but not through everything that may come.",
		"broken": "Something of the servers is broken.",
	},

	ConsensusColumns: []string{
		"Server", "Health", "Role", "Since", "Heard of the leader before", "Term", "Index", "Version", "Address",
	},
	GossipColumns:     []string{"Member", "Status", "Address", "Region", "Datacenter", "Build"},
	DoctorColumns:     []string{"State", "Check", "Server", "What was found"},
	NodesFoundColumns: []string{"State", "Check", "Nodes", "What was found"},
	EvaluationColumns: []string{"Id", "Status", "Job", "Namespace", "Cause", "Made", "Why"},
	DeploymentColumns: []string{"Id", "Status", "Job", "Namespace", "Version", "Healthy", "Made", "Why"},
	QueuedColumns:     []string{"Group", "Allocations"},
	PlacedColumns:     []string{"Allocation", "Name", "Status", "Node"},
	RelatedColumns:    []string{"Id", "Status", "Cause", "Why"},
	ServiceColumns:    []string{"Service", "Namespace", "Tags"},
	InstanceColumns:   []string{"Address", "Health", "Job", "Allocation", "Node", "Datacenter", "Tags"},
	VolumeColumns:     []string{"Volume", "Id", "Namespace", "Status", "Node", "Node pool", "Capacity", "Plugin"},
	NamespaceColumns:  []string{"Namespace", "Quota", "Description"},
	QuotaColumns:      []string{"Region", "Of", "Used", "Limit", "Share"},
	VariableColumns:   []string{"Path", "Namespace", "Changed", "Lock"},
	ItemColumns:       []string{"Name", "Value"},
	ConflictColumns:   []string{"Item", "There now", "You typed"},
	TokenColumns:      []string{"Accessor", "Name", "Type", "Policies and roles", "All regions", "Ends", "Made"},
	PolicyColumns:     []string{"Policy", "Bound to", "Description"},
	RoleColumns:       []string{"Role", "Id", "Description", "Policies"},
	MethodColumns:     []string{"Auth method", "Type", "Default"},
	RuleColumns:       []string{"Auth method", "Whom", "Gives", "Description", "Id"},
}
