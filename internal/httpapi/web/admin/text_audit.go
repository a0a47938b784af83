package admin

// AuditText is the texts of the page with what servers recorded of requests.
var AuditText = struct {
	Audit, About, Who, Operation, Object, Allowed, Class, Since, Until, Anything, Yes, No, Nothing, NothingYet, Silent, Refused,
	CommandLine string

	Columns []string
}{
	Audit: "Audit",
	About: "Who asked a server of this region for what, from where, and how it ended: all that changes something or reads a secret, and all " +
		"that was refused. What the page itself is asked for is recorded as what it asks the API for.",
	Who: "Token (accessor or name)", Operation: "Operation", Object: "Path or object", Allowed: "Let in", Class: "Class",
	Since: "Since (2h, or a time)", Until: "Before", Anything: "all", Yes: "yes", No: "no, refused",
	Nothing:    "Nothing is recorded that matches.",
	NothingYet: "Nothing that matches was recorded since %s. What is older was not looked at yet: go on.",
	Silent:     "Of these servers nothing is shown", Refused: "refused",
	CommandLine: "On the command line: ",
	Columns:     []string{"Time", "Server", "Who", "Operation", "Path", "Object", "Namespace", "Status", "From", "Needs, or why not"},
}
