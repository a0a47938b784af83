package find

// Text is the texts of the search and of the command palette, in one place for translators.
var Text = struct {
	Search, Words, Find, Length, More, Nothing string

	Jobs, Groups, Tasks, Images, Allocations, Nodes, Namespaces, Evaluations, Deployments,
	Environments, Runners, Executions, Services, Volumes,
	Variables string

	Palette, PaletteMore, Pages, Actions, Fields, Searching, Lost, None, Keys, KeysMore, SingleKeys, Close string

	KeyColumns []string
	KeyList    [][2]string
}{
	Search: "Search", Words: "Search everything", Find: "Find", Length: "Give %d letters or more, and at most %d bytes.",
	More: "There is more: give more letters.", Nothing: "Nothing that your token may see has that in its name.",

	Jobs: "Jobs", Groups: "Groups", Tasks: "Tasks", Images: "Images", Allocations: "Allocations", Nodes: "Nodes", Namespaces: "Namespaces",
	Evaluations: "Evaluations", Deployments: "Deployments", Environments: "Environments", Runners: "Runners", Executions: "Executions",
	Services: "Services", Volumes: "Volumes", Variables: "Variables",

	Palette: "Go to a page, do something here, or find something", PaletteMore: "Type what you want",
	Pages: "Page", Actions: "Do", Fields: "Field", Searching: "Searching…", Lost: "No connection: only what is on this page",
	None: "Nothing is called so.", Keys: "Keys", SingleKeys: "Single keys work", Close: "Close",
	KeysMore: "Keys work while nothing is being typed. Single keys can be switched off here; Ctrl-K stays.",

	KeyColumns: []string{"Key", "What it does"},
	KeyList: [][2]string{
		{"Ctrl-K", "command palette: go to a page, do something on this one, find something"},
		{"/", "search everything"},
		{"?", "this list"},
		{"g o", "overview"},
		{"g j", "jobs"},
		{"g a", "allocations"},
		{"g n", "nodes"},
		{"g t", "topology"},
		{"g e", "environments"},
		{"g x", "executions"},
		{"g r", "runners"},
		{"g f", "fleet"},
		{"g v", "events"},
		{"g s", "servers"},
		{"g p", "playground"},
		{"j, k", "next and former row of a list; Enter opens it"},
		{"[, ]", "former and next tab"},
		{"Esc", "close what is open"},
	},
}
