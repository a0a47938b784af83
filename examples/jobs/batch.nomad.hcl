# A batch job that runs to its end in a sandbox: drover job run -wait batch.nomad.hcl
job "sum" {
  type = "batch"

  group "work" {
    task "sum" {
      driver = "sandbox"
      config {
        image   = "host" # the machine's own /usr, read-only
        command = "/bin/sh"
        args    = ["-c", "seq 1 1000 | awk '{ s += $1 } END { print s }'"]
      }
      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
