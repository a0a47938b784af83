package job

import (
	"errors"
	"io/fs"
	"os"

	"github.com/drover-project/drover"
)

// exampleJob runs on an agent with default settings: raw_exec and a shell need neither an image nor a download. Each
// block shows one thing that most jobs need.
const exampleJob = `# A service: two processes that are kept running. See: drover job plan, drover job run, drover job status.
job "example" {
  type = "service" # or batch (runs to its end), system (one a node), sysbatch

  group "web" {
    count = 2

    network {
      port "http" {} # a free port of the node, in NOMAD_PORT_http
    }

    restart {
      attempts = 2
      delay    = "5s"
    }

    task "server" {
      driver = "raw_exec" # a process of the node; also: sandbox, docker

      config {
        command = "/bin/sh"
        args    = ["-c", "echo serving on port $NOMAD_PORT_http; exec sleep 3600"]
      }

      env {
        GREETING = "hello from ${node.unique.name}"
      }

      resources {
        cpu    = 50 # MHz
        memory = 32 # MB
      }
    }
  }
}
`

// writeNew creates the file with mode 0644 (before umask). O_EXCL makes the check and the creation one step, so no
// file of somebody else is overwritten. Errors: Conflict if the name is taken; those of the file system.
func writeNew(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist):
		return drover.Errorf(drover.Conflict, "%s is there already: name another file", name)
	case err != nil:
		return err
	}
	if _, err = f.WriteString(text); err != nil {
		_ = f.Close() // the first error says it
		return err
	}
	return f.Close()
}
