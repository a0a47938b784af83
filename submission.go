package drover

// MaxJobSource bounds the source text of a job that is kept, in bytes of source and variables together, unless the
// server is configured otherwise: Nomad's job_max_source_size.
const MaxJobSource = 1_000_000

// JobSubmission is the text that a version of a job was made of.
type JobSubmission struct {
	Source        string            // the job file
	Format        string            // hcl2, hcl1 or json
	VariableFlags map[string]string // -var name=value
	Variables     string            // content of variable files

	Namespace      string
	JobID          string
	Version        uint64
	JobModifyIndex uint64 // when it was given
}

// Size returns the bytes of its texts.
func (s *JobSubmission) Size() int {
	n := len(s.Source) + len(s.Format) + len(s.Variables)
	for k, v := range s.VariableFlags {
		n += len(k) + len(v)
	}
	return n
}
