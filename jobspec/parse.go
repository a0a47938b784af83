package jobspec

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/drover-project/drover"
)

// Options of Parse.
type Options struct {
	Name     string            // of the file, for messages; default "job.hcl"
	Vars     map[string]string // values for variables, as text: "3", "[\"a\"]", "plain words"; they win over VarFile
	VarFile  string            // the text of a file with name = value lines; it wins over Env
	Env      map[string]string // values from the environment, as Vars; names that the file does not declare are ignored
	VarNames []string          // of Vars given by flags must be declared: an unknown one is an error
	Dir      string            // where file("x") begins; "" = the functions that read files refuse
	Now      func() time.Time  // for timestamp(); nil = it refuses
}

// Parse reads a job file. The job is not canonicalized. Errors: Invalid, with file, line and what is wrong, all at once, in
// the order of the file.
func Parse(text []byte, o Options) (*drover.Job, error) {
	if o.Name == "" {
		o.Name = "job.hcl"
	}
	body, diags := parse(text, o.Name)
	if body == nil {
		return nil, diagnosed(diags)
	}
	d := &decoder{src: text, ctx: &hcl.EvalContext{Functions: functions(o), Variables: map[string]cty.Value{}}}
	job := d.file(body, o)
	if d.diags.HasErrors() {
		return nil, diagnosed(d.diags)
	}
	return job, nil
}

// diagnosed makes one Invalid error of all the diagnostics that are errors; warnings are dropped. The parser's own text
// begins with file, line and column.
func diagnosed(diags hcl.Diagnostics) error {
	// Arguments are decoded in no order, and the text of variables before the job: the reader wants the order of the file.
	slices.SortStableFunc(diags, func(a, b *hcl.Diagnostic) int {
		if a.Subject == nil || b.Subject == nil {
			return cmp.Compare(placeless(a), placeless(b))
		}
		return cmp.Or(
			cmp.Compare(a.Subject.Filename, b.Subject.Filename),
			cmp.Compare(a.Subject.Start.Byte, b.Subject.Start.Byte),
			cmp.Compare(a.Summary+a.Detail, b.Summary+b.Detail),
		)
	})
	var lines []string
	for _, d := range diags {
		switch {
		case d.Severity != hcl.DiagError:
		case d.Subject == nil:
			lines = append(lines, d.Summary+"; "+d.Detail)
		default:
			lines = append(lines, d.Error())
		}
	}
	return drover.Errorf(drover.Invalid, "job file: %s", strings.Join(lines, "; "))
}

// placeless is 1 for a problem that stands nowhere in a file, which is told last, else 0.
func placeless(d *hcl.Diagnostic) int {
	if d.Subject == nil {
		return 1
	}
	return 0
}

// decoder walks the syntax tree; what it finds wrong it collects.
type decoder struct {
	// src is the text of the file, from which interpolations of the node are copied.
	src []byte
	// ctx has the functions, var and local; within a dynamic block it is a child with the iterator.
	ctx   *hcl.EvalContext
	diags hcl.Diagnostics
	// inside counts the interpolations around what is being evaluated.
	inside int

	outline *outline // set by Words, which asks for what fill would take
}

// errorf notes an error at a place of the file. Decoding goes on, so that the user learns of all errors at once.
func (d *decoder) errorf(r hcl.Range, summary, detail string) {
	d.diags = append(d.diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &r})
}

// file evaluates variables and locals, then decodes the job.
func (d *decoder) file(body *hclsyntax.Body, o Options) *drover.Job {
	for _, a := range body.Attributes {
		d.errorf(a.NameRange, "Unsupported argument", "An argument named \""+a.Name+"\" is not expected at the top of a job file.")
	}
	// Locals may use variables, and the job both, wherever in the file they stand.
	d.variables(body, o)
	d.locals(body)
	var job *drover.Job
	for _, b := range body.Blocks {
		switch b.Type {
		case "variable", "variables", "locals":
		case "job":
			if job != nil {
				d.errorf(b.TypeRange, "Second job", "A job file holds one job.")
				continue
			}
			job = &drover.Job{}
			d.labelled(b, func(label string) { job.ID, job.Name = label, label })
			d.job(b.Body, job)
		default:
			d.errorf(b.TypeRange, "Unsupported block type", "Blocks of type \""+b.Type+"\" are not expected at the top of a job file.")
		}
	}
	if job == nil && !d.diags.HasErrors() {
		d.errorf(body.SrcRange, "No job", "The file has no job block.")
	}
	return job
}

// labelled checks that the block has exactly one label and hands it on. Otherwise it reports an error and does not call
// set; the caller decodes the body all the same.
func (d *decoder) labelled(b *hclsyntax.Block, set func(string)) {
	if len(b.Labels) != 1 {
		d.errorf(b.TypeRange, "Wrong labels", "A "+b.Type+" block has exactly one label: "+b.Type+" \"name\" { … }")
		return
	}
	set(b.Labels[0])
}
