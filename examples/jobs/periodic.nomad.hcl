# A job that is launched each night; drover job periodic force cleanup launches it now.
job "cleanup" {
  type = "batch"

  periodic {
    crons            = ["0 3 * * *"]
    time_zone        = "Europe/Berlin"
    prohibit_overlap = true
  }

  group "cleanup" {
    task "cleanup" {
      driver = "sandbox"
      config {
        image   = "host"
        command = "/bin/echo"
        args    = ["nothing to clean"]
      }
    }
  }
}
