package jobspec_test

import (
	"fmt"

	"github.com/drover-project/drover/jobspec"
)

// Read a job file with a variable, fill the defaults in, and check it.
func ExampleParse() {
	text := `
variable "count" {
  type    = number
  default = 1
}
job "web" {
  group "web" {
    count = var.count
    task "server" {
      driver = "sandbox"
      config {
        image   = "host"
        command = "/bin/sleep"
        args    = ["3600"]
      }
    }
  }
}`
	job, err := jobspec.Parse([]byte(text), jobspec.Options{Name: "web.nomad.hcl", Vars: map[string]string{"count": "3"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	job.Canonicalize()
	fmt.Println(job.ID, job.Type, *job.TaskGroups[0].Count, job.TaskGroups[0].Tasks[0].Config["command"], job.Validate())
	// Output: web service 3 /bin/sleep <nil>
}

// What is wrong is told with its place, all at once.
func ExampleParse_errors() {
	_, err := jobspec.Parse([]byte("job \"web\" {\n  tipe = \"batch\"\n}"), jobspec.Options{Name: "web.nomad.hcl"})
	fmt.Println(err)
	// Output: job file: web.nomad.hcl:2,3-7: Unsupported argument; An argument named "tipe" is not expected here. Did you mean "type"?
}

// List what a job file may say about a group's warm pool.
func ExampleWords() {
	for _, w := range jobspec.Words() {
		if w.Path == "group.pool" || w.Path == "group.pool.size" {
			fmt.Println(w.Path, w.Block)
		}
	}
	// Output:
	// group.pool true
	// group.pool.size false
}
