package parts

// FirstJob is an example to begin with.
const FirstJob = `job "hello" {
  group "web" {
    count = 1
    task "server" {
      driver = "exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "while :; do date; sleep 1; done"]
      }
      resources {
        cpu    = 100
        memory = 32
      }
    }
  }
}
`
