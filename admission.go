package drover

// Levels of an admission rule.
const (
	AdmissionEnforce = "enforce" // refuses the job
	AdmissionWarn    = "warn"    // warns whoever registers it
	AdmissionDryRun  = "dry-run" // tells only who asks: by planning the job, or by a test of its file
)

// MaxAdmissionRules is how many rules a cluster may have.
const MaxAdmissionRules = 256

// AdmissionRule says which tasks jobs may not have. It is against a task of which When holds and of which, if it has any Max, a number is
// over its maximum.
type AdmissionRule struct {
	Name        string
	Description string
	Namespaces  []string         // globs; none = every namespace
	Level       string           // AdmissionEnforce unless another is given
	When        string           // an expression of go-bexpr over a task's fields; "" = every task
	Max         map[string]int64 // the most that numbers of a task may be, by the names of its fields
	Message     string           // for whoever is refused: what to do instead
	CreateIndex uint64
	ModifyIndex uint64
}

// AdmissionVerdict is that a rule is against a task of a job.
type AdmissionVerdict struct {
	Rule    string
	Level   string
	Group   string
	Task    string
	Message string // the rule's
	Reason  string // what of the task the rule is against
}
