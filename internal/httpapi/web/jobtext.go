package web

// action is what a form of a job's page asks for, in words.
type action struct {
	button string // what its button says
	done   string // what is said after it
	sure   string // what is asked before, with the name of what ends in %s; "" asks nothing
}

// look is the class of its button: what ends something looks so, and what is waited for stands out.
func (a action) look(name string) string {
	switch {
	case a.sure != "":
		return "ends"
	case name == "promote":
		return "primary"
	}
	return ""
}

// jobText is every text of the pages of jobs, in one place for translators.
var jobText = struct {
	Overview, Versions, Evaluations, Deployments, Deployment, Submitted, Definition, Parts, Where, AllOf string

	Actions map[string]action

	Sure, Cancel, NoAction, Count, Dispatch, Payload, PayloadMore, Meta, MetaMore, MetaLine string

	Difference, Same, FirstVersion, Stable, Source, SourceGone, SourceOlder, Next string

	Places, MoreNodes, NextLaunch, Children, NoChildren, Schedule string

	RunJob, Job, JobMore, Variables, VariablesMore, Plan, Submit, Planned, NoWarnings, Warnings, Nothing, WouldPlace,
	Changed string

	EvaluationColumns, DeploymentColumns, DiffColumns, PlanColumns, PlaceColumns, ChildColumns []string
}{
	Where:    "Where it runs, on the map of nodes",
	AllOf:    "All %d allocations, with search",
	Overview: "Overview", Versions: "Versions", Evaluations: "Evaluations", Deployments: "Deployments", Definition: "Definition",
	Deployment: "Deployment", Submitted: "Submitted", Parts: "Parts of the job",

	Actions: map[string]action{
		"stop":     {"Stop", "The job is stopped: its allocations end.", "Stop the job %s? Its allocations end."},
		"purge":    {"Purge", "The job is purged.", "Purge the job %s? Its allocations end, and its versions are forgotten."},
		"start":    {"Start", "The job is started.", ""},
		"evaluate": {"Evaluate", "The scheduler looks at the job again.", ""},
		"force":    {"Launch now", "The job is launched.", ""},
		"scale":    {"Scale", "The count is changed.", ""},
		"dispatch": {"Dispatch", "The job is dispatched.", ""},
		"revert":   {"Revert", "The job is reverted.", "Revert to version %s? A new version with its specification replaces the running one."},
		"promote":  {"Promote", "The deployment is promoted.", ""},
		"pause":    {"Pause", "The deployment is paused.", ""},
		"resume":   {"Resume", "The deployment goes on.", ""},
		"fail":     {"Fail", "The deployment is failed.", "Fail the deployment %s? Groups with auto_revert go back to the last stable version."},
	},
	Sure: "Are you sure?", Cancel: "Cancel", NoAction: "There is no such action", Count: "Count of %s",
	Dispatch: "Dispatch", Payload: "Payload", PayloadMore: "what the dispatched job gets, as text",
	Meta: "Meta", MetaMore: "a line NAME=VALUE each", MetaLine: "meta, line %d: %q is not NAME=VALUE",

	Difference: "Difference to version %d", Same: "Nothing but its number differs.", FirstVersion: "It is the oldest version that is kept.",
	Stable: "stable", Source: "Source", SourceGone: "The text of this version is not kept: it was not given with the job.",
	SourceOlder: "The job was scaled, stopped or rolled back after this text was given: its versions tell what differs.",
	Next:        "Change and run",

	RunJob: "Run a job", Job: "Job file", JobMore: "HCL, or JSON as the API takes it", Variables: "Variables",
	VariablesMore: "the content of a variable file", Plan: "Plan", Submit: "Run", Planned: "What would happen",
	NoWarnings: "No warnings.", Warnings: "Warnings", Nothing: "Nothing would change.",
	WouldPlace: "Not all of it would be placed now", Changed: "Difference",

	EvaluationColumns: []string{"Id", "Made", "Cause", "Status", "Why"},
	DeploymentColumns: []string{"Id", "Version", "Status", "Made", "Why"},
	DiffColumns:       []string{"What", "Old", "New"},
	Places:            "Where it would be placed", MoreNodes: "%d more nodes would get something, too.", NextLaunch: "The next launch is at",
	Children: "Launches", NoChildren: "Nothing was launched yet, or it is forgotten.", Schedule: "Schedule",

	PlaceColumns: []string{"Group", "Node", "Allocations"},
	ChildColumns: []string{"Job", "Status", "Launched", "Allocations"},
	PlanColumns:  []string{"Group", "Place", "Stop", "In place", "Destructive", "Canaries", "Migrate", "Unchanged"},
}
