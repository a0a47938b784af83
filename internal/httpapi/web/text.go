package web

import "github.com/drover-project/drover/internal/httpapi/web/parts"

// text is every text of the page, in one place for translators.
var text = struct {
	Skip, Menu, Pages, More, SignIn, SignInMore, SignInOther, SignOut, Token, NoToken, NotSignedIn, Dark, Light string

	Failed, Forbidden, NoPage, NoPageMore string

	Command, BadForm string

	Job, Node, Allocations, Groups, Group, Task, Status, Namespace, Type, Version, Priority, Wanted, Made, ID, Nothing,
	NewestOf string

	GroupColumns []string
}{
	Skip: "Skip to content", Menu: "Menu", Pages: "Pages", More: "More",
	SignIn: "Sign in", SignOut: "Sign out", SignInOther: "Sign in with another token", Token: "Token",
	SignInMore: "The secret of a token of this cluster, or the agent's api_token. It stays in a cookie that no script can read, " +
		"until the browser closes.",
	NoToken:     "The token is empty.",
	NotSignedIn: "Not signed in", Dark: "Dark", Light: "Light",

	Failed: parts.Failed, Forbidden: parts.Forbidden,
	NoPage: "There is no such page", NoPageMore: "The address may be mistyped, or of another version. The pages that there are stand above.",

	Command: parts.Command, BadForm: parts.BadForm,

	Job: "Job", Node: "Node", Allocations: "Allocations", Groups: "Groups",
	Group: "Group",
	Task:  "Task", Status: "Status", Namespace: "Namespace", Type: "Type", Version: "Version", Priority: "Priority", Wanted: "Wanted",
	Made: "Made", ID: "Id", Nothing: "There is nothing here yet.", NewestOf: "The newest %d of %d.",

	GroupColumns: []string{"Group", "Wanted", "Allocations", "Tasks"},
}
