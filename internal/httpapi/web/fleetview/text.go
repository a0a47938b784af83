package fleetview

// Text is the texts of the fleet's pages.
var Text = struct {
	Fleet, Pools, Machines, Machine, Waiting, Plan, Costs, History, Jobs                                                    string
	NoPools, NoMachines, NoWaiting, NoPlan, NoCosts, NewestOf, PausedCreates, PausedDestroys                                string
	State, Pool, Offering, Price, Charged, Work, Bought, Since, Behavior, Node, Provider, Now, Total, Deferred, Well, Waits string

	PoolColumns, MachineColumns, WaitingColumns, PlanColumns, CostColumns, HistoryColumns []string
}{
	Fleet: "Fleet", Pools: "Pools", Machines: "Machines", Machine: "Machine", Waiting: "Work that waits", Plan: "What the fleet would do now",
	Costs: "Cost by day", History: "What happened to it", Jobs: "Work on it",
	NoPools:    "There is no pool: nothing is bought. `drover fleet put FILE` makes one.",
	NoMachines: "There is no machine.", NoWaiting: "No work waits for a machine.", NoPlan: "Nothing: all is as it should be.",
	NoCosts: "Nothing was charged yet.", NewestOf: "The first %d of %d.",
	PausedCreates: "buys nothing", PausedDestroys: "returns nothing",

	State: "State", Pool: "Pool", Offering: "Offering", Price: "Price an hour", Charged: "Charged so far", Work: "Pieces of work",
	Bought: "Why it was bought", Since: "Since (UTC)", Behavior: "What operators want", Node: "Node", Provider: "Cloud's id",
	Now:   "Why it is so",
	Total: "Total", Deferred: "%d creates wait for their turn.", Well: "well", Waits: "waits",

	PoolColumns:    []string{"Pool", "State", "Machines", "Kept at least", "An hour", "Today", "What is wrong"},
	MachineColumns: []string{"Machine", "State", "Since (UTC)", "Pool", "Offering", "Price an hour", "Charged", "Work", "Why"},
	WaitingColumns: []string{"Work", "Count", "In line", "Since (UTC)", "Ready about (UTC)", "Pool", "Why it waits"},
	PlanColumns:    []string{"Pool", "What", "Of", "Why"},
	CostColumns:    []string{"Day", "Cost", "Hours of machines", ""},
	HistoryColumns: []string{"Time (UTC)", "What", "Why"},
}
