package job

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
