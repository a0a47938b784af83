package fleetview

import "github.com/drover-project/drover/fleet"

// Text is the texts of the fleet's pages.
var Text = struct {
	Fleet, Pools, Machines, Machine, Waiting, Plan, History, Jobs                                                           string
	NoPools, NoMachines, NoWaiting, NoPlan, NoCosts, NewestOf, PausedCreates, PausedDestroys                                string
	State, Pool, Offering, Price, Charged, Work, Bought, Since, Behavior, Node, Provider, Now, Total, Deferred, Well, Waits string

	Simulate, SimulateMore, Policy, PolicyMore, Workload, PerHour, Run, Length, Seed, Compare, Try, SavePolicy, PolicyNow, Stopped string

	OverTime, Running, WaitingTasks, SimulateLink, OfBudget string

	Timeline, TimelineMore, NoTimeline, MoreMachines, MoreJobs, Busy, AllPools, Span, Show string

	Phases  map[fleet.PhaseName]string
	CostsBy map[string]string

	TimelineColumns, SimulatedColumns, PoolColumns, MachineColumns, WaitingColumns, PlanColumns, CostColumns, DayColumns,
	HistoryColumns []string
}{
	Fleet: "Fleet", Pools: "Pools", Machines: "Machines", Machine: "Machine", Waiting: "Work that waits", Plan: "What the fleet would do now",
	History: "What happened to it", Jobs: "Work on it",
	NoPools:    "There is no pool: nothing is bought. `drover fleet put FILE` makes one.",
	NoMachines: "There is no machine.", NoWaiting: "No work waits for a machine.", NoPlan: "Nothing: all is as it should be.",
	NoCosts: "Nothing was charged yet.", NewestOf: "The first %d of %d.",
	PausedCreates: "buys nothing", PausedDestroys: "returns nothing",

	State: "State", Pool: "Pool", Offering: "Offering", Price: "Price an hour", Charged: "Charged so far", Work: "Pieces of work",
	Bought: "Why it was bought", Since: "Since", Behavior: "What operators want", Node: "Node", Provider: "Cloud's id",
	Now:   "Why it is so",
	Total: "Total", Deferred: "%d creates wait for their turn.", Well: "well", Waits: "waits",

	Simulate: "Simulator", SimulateMore: "Tries a pool's policy on a workload, on virtual time, with the code that decides for real pools. " +
		"Nothing is bought. Times are UTC, from a Monday on.",
	Policy: "Policy", PolicyMore: "JSON, as GET /v1/fleet/pool/NAME has it", Workload: "Workload", PerHour: "Tasks an hour", Run: "Run time",
	Length: "Length", Seed: "Seed", Compare: "compare with other rules", Try: "Simulate", SavePolicy: "Save as the policy of pool “%s”",
	PolicyNow: "The policy by now, which somebody else saved: yours is below, save it again to replace that",
	Stopped:   "%s kept work waiting, by %s together", OverTime: "How it goes with this policy", Running: "Tasks that run",
	WaitingTasks: "Tasks that wait", SimulateLink: "Simulate", OfBudget: "%s of %s, %s left",

	Timeline: "Timeline of machines", TimelineMore: "What each machine did, those that were asked for last first. When a machine had work " +
		"is not kept: “no work” is the last time without.",
	NoTimeline:   "No machine was there in that time: none was bought, or none in this pool.",
	MoreJobs:     "%d more: %s",
	MoreMachines: "%d more were there.", Busy: "busy: %d", AllPools: "all", Span: "How far back", Show: "Show",
	Phases: map[fleet.PhaseName]string{
		fleet.PhaseAsked: "asked", fleet.PhaseBooting: "booting", fleet.PhaseActive: "takes work", fleet.PhaseIdle: "no work",
		fleet.PhaseDraining: "draining", fleet.PhaseReturning: "returning",
	},
	TimelineColumns: []string{"Machine", "Pool", "Now", "What it did", "Cost", "Why it was bought", "Why it is kept, or went"},

	CostsBy: map[string]string{"day,job": "Cost by day, and by job on each", "job": "Cost by job", "namespace": "Cost by namespace"},

	SimulatedColumns: []string{
		"Rules", "Total", "Money", "Waiting", "× bound", "Wait p50", "p95", "p99", "Machines", "Peak", "Machine hours",
	},
	PoolColumns:    []string{"Pool", "State", "Machines", "Kept at least", "An hour", "Today", "What is wrong", ""},
	MachineColumns: []string{"Machine", "State", "Since", "Pool", "Offering", "Price an hour", "Charged", "Work", "Why"},
	WaitingColumns: []string{"Work", "Count", "In line", "Since", "Ready about", "Pool", "Why it waits"},
	PlanColumns:    []string{"Pool", "What", "Of", "Why"},
	CostColumns:    []string{"", "Pool", "Cost", "Hours of machines", ""},
	DayColumns:     []string{"Day", "Pool", "Cost", "Hours of machines", "", "Of which"},
	HistoryColumns: []string{"Time", "What", "Why"},
}
