package job

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/jobspec"
)

// file says how a job file is read: its format, and the variables for it.
type file struct {
	// Words name=value of -var, in the order in which they were given: the last one of a name wins.
	vars []string
	// Paths of -var-file; their texts are read one after the other.
	varFiles []string
	// Variables that flags give must be declared.
	strict bool
	// Set by -json. Without it a text that begins with a brace is taken for JSON.
	json bool
}

// bind adds the flags of commands that read a job file, with Nomad's names.
func (j *file) bind(f *pflag.FlagSet) {
	f.StringArrayVar(&j.vars, "var", nil, "a variable, name=value; can be repeated (also NOMAD_VAR_name)")
	f.StringArrayVar(&j.varFiles, "var-file", nil, "a file with lines name = value; can be repeated")
	f.BoolVar(&j.strict, "hcl2-strict", true, "refuse variables of flags that the file does not declare")
	f.BoolVar(&j.json, "json", false, "the file is JSON (found out by itself otherwise)")
}

// read reads the job from the path; "-" is stdin. It also returns the submission: the source text with its format and
// variables, which the server keeps beside the version. The job is not validated. Errors: Invalid with file and line.
func (j *file) read(ctx context.Context, a *term.App, path string) (*drover.Job, *drover.JobSubmission, error) {
	text, err := a.ReadInput(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	source := &drover.JobSubmission{Source: string(text), Format: "json"}
	var job *drover.Job
	if j.json || strings.HasPrefix(string(bytes.TrimSpace(text)), "{") {
		job, err = jobFromJSON(text)
	} else {
		job, err = j.parse(path, text, source)
	}
	if err != nil {
		return nil, nil, err
	}
	// The file's own namespace comes first. "*" chooses where to look, so it is no namespace to register in.
	if t := a.Resolved(); job.Namespace == "" && t.Namespace != "*" {
		job.Namespace = t.Namespace
	}
	return job, source, nil
}

// parse reads HCL, and notes in source which variables went into it. A value of the environment gives way to
// one of a file, and both give way to -var, as with Nomad. Errors: Invalid.
func (j *file) parse(path string, text []byte, source *drover.JobSubmission) (*drover.Job, error) {
	o := jobspec.Options{Name: path, Vars: map[string]string{}, Env: map[string]string{}, Dir: filepath.Dir(path), Now: clock.Wall{}.Now}
	// Functions such as file() need a folder: for stdin that is the working directory.
	if path == "-" {
		o.Name, o.Dir = "stdin", "."
	}
	for _, kv := range os.Environ() {
		if name, value, ok := strings.Cut(kv, "="); ok {
			if name, ok = strings.CutPrefix(name, "NOMAD_VAR_"); ok {
				o.Env[name] = value
			}
		}
	}
	for _, v := range j.vars {
		name, value, ok := strings.Cut(v, "=")
		if !ok {
			return nil, drover.Errorf(drover.Invalid, "-var %q: want name=value", v)
		}
		o.Vars[name] = value
		// An undeclared name is an error if a flag gave it, but not if the environment did.
		if j.strict {
			o.VarNames = append(o.VarNames, name)
		}
	}
	for _, f := range j.varFiles {
		more, err := os.ReadFile(f)
		if err != nil {
			return nil, drover.Errorf(drover.Invalid, "-var-file: %w", err)
		}
		o.VarFile += string(more) + "\n"
	}
	job, err := jobspec.Parse(text, o)
	declared := jobspec.Declared(text)
	source.Format, source.Variables = "hcl2", o.VarFile
	// The submission's flags win over its file, so a value of the environment that gave way to the file is not among them.
	inFile := jobspec.Given(o.VarFile)
	maps.DeleteFunc(o.Env, func(name, _ string) bool { return slices.Contains(inFile, name) })
	source.VariableFlags = o.Env
	maps.Copy(source.VariableFlags, o.Vars)
	// The submission is kept by the server and can be read there, so it must not hold variables that are not this job's.
	maps.DeleteFunc(source.VariableFlags, func(name, _ string) bool { return !slices.Contains(declared, name) })
	return job, err
}

// jobFromJSON reads a job as the API has it: {"Job": {…}}, or the job alone, as 'job inspect' and other tools print
// it. Errors: Invalid if it is no such JSON, or has no ID.
func jobFromJSON(text []byte) (*drover.Job, error) {
	var wrapped struct{ Job *drover.Job }
	if err := json.Unmarshal(text, &wrapped); err != nil {
		return nil, drover.Errorf(drover.Invalid, "the job's JSON: %w", err)
	}
	if wrapped.Job == nil {
		wrapped.Job = &drover.Job{}
		if err := json.Unmarshal(text, wrapped.Job); err != nil {
			return nil, drover.Errorf(drover.Invalid, "the job's JSON: %w", err)
		}
	}
	if wrapped.Job.ID == "" {
		return nil, drover.Errorf(drover.Invalid, "the job's JSON has no ID: want {\"Job\": {\"ID\": …}}")
	}
	return wrapped.Job, nil
}
